/* What an address belongs to: the library, and the nearest symbol before it in the library's dynamic table.
 *
 * The table is read in place, within dl_iterate_phdr(), so that the library cannot go away meanwhile; dladdr()
 * would take the lock under which constructors of libraries run, and the writer must not wait for these.
 * A library's dynamic table has only what it exports: where that does not help, its file is read, which has all
 * symbols if it has not been stripped. Else the nearest symbol may be another function's, which `is_within`
 * tells.
 */
#ifndef CL_NATIVE_SYMBOLS_H
#define CL_NATIVE_SYMBOLS_H

#if defined(__linux__)

#  include <fcntl.h>
#  include <link.h>
#  include <stdint.h>
#  include <stdlib.h>
#  include <string.h>
#  include <sys/mman.h>
#  include <sys/stat.h>
#  include <unistd.h>

#  include "native_names.h"

#  define CL_SYMBOL_BYTES CL_NAME_BYTES
#  define CL_BUILD_ID_BYTES 32u
#  define CL_SYMBOL_NEAR 4096u /* what is farther before the address says nothing */

typedef struct {
    uintptr_t address;
    uint64_t offset; /* in the library */
    uintptr_t start, end; /* of the symbol */
    uintptr_t code_start, code_end; /* of the part of the library that is loaded there */
    int is_within;   /* of the symbol; else it is the nearest before the address */
    char symbol[CL_SYMBOL_BYTES], image[CL_SYMBOL_BYTES];
    uint8_t build_id[CL_BUILD_ID_BYTES];
    uint32_t build_id_bytes; /* 0: it has none */
} cl_symbol;

static void
cl_symbol_copy(char *to, const char *from)
{
    size_t bytes = strnlen(from, CL_SYMBOL_BYTES - 1);
    memcpy(to, from, bytes);
    to[bytes] = 0;
}

/* The number of symbols that a GNU hash table speaks of. */
static uint32_t
cl_gnu_hash_count(const uint32_t *table)
{
    uint32_t buckets = table[0], first = table[1], bloom = table[2];
    const uint32_t *bucket = table + 4 + bloom * (sizeof(ElfW(Addr)) / 4), *chain = bucket + buckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets; i++) {
        last = bucket[i] > last ? bucket[i] : last;
    }
    if (last < first) {
        return first;
    }
    while (!(chain[last - first] & 1u)) {
        last++;
    }
    return last + 1;
}

static void
cl_symbol_search(cl_symbol *found, ElfW(Addr) base, const ElfW(Dyn) *dynamic)
{
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    const uint32_t *gnu_hash = NULL, *hash = NULL;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        /* The dynamic linker has made addresses of these, but for the kernel's own object. */
        uintptr_t at = dynamic->d_un.d_ptr;
        at = at < base ? at + base : at;
        symbols = dynamic->d_tag == DT_SYMTAB ? (const ElfW(Sym) *)at : symbols;
        names = dynamic->d_tag == DT_STRTAB ? (const char *)at : names;
        gnu_hash = dynamic->d_tag == DT_GNU_HASH ? (const uint32_t *)at : gnu_hash;
        hash = dynamic->d_tag == DT_HASH ? (const uint32_t *)at : hash;
    }
    if (symbols == NULL || names == NULL || (gnu_hash == NULL && hash == NULL)) {
        return;
    }
    uint32_t count = hash != NULL ? hash[1] : cl_gnu_hash_count(gnu_hash);
    const ElfW(Sym) *nearest = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const ElfW(Sym) *symbol = &symbols[i];
        unsigned type = symbol->st_info & 15u;
        if (symbol->st_value != 0 && symbol->st_shndx != SHN_UNDEF
            && (type == STT_FUNC || type == STT_GNU_IFUNC) && base + symbol->st_value <= found->address
            && (nearest == NULL || symbol->st_value > nearest->st_value)) {
            nearest = symbol;
        }
    }
    if (nearest != NULL) {
        found->is_within = found->address - base - nearest->st_value < nearest->st_size;
        found->start = base + nearest->st_value;
        found->end = found->start + nearest->st_size;
        cl_symbol_copy(found->symbol, names + nearest->st_name);
    }
}

/* Looks for the build id among the notes of a library: each a head of three sizes, a name and what it says. */
static void
cl_symbol_build_id(cl_symbol *found, const char *at, size_t size)
{
    const ElfW(Nhdr) *note;
    for (size_t whole; size >= sizeof *note; at += whole, size -= whole) {
        note = (const ElfW(Nhdr) *)(const void *)at;
        size_t name = (note->n_namesz + 3u) & ~3u;
        whole = sizeof *note + name + ((note->n_descsz + 3u) & ~3u);
        if (whole > size) {
            return;
        }
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(note + 1, "GNU", 4) == 0
            && note->n_descsz <= CL_BUILD_ID_BYTES) {
            memcpy(found->build_id, (const char *)(note + 1) + name, note->n_descsz);
            found->build_id_bytes = note->n_descsz;
            return;
        }
    }
}

static int
cl_symbol_visit(struct dl_phdr_info *library, size_t size, void *argument)
{
    (void)size;
    cl_symbol *found = argument;
    const ElfW(Dyn) *dynamic = NULL;
    int is_here = 0;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        uintptr_t start = library->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && found->address - start < part->p_memsz) {
            is_here = 1;
            found->code_start = start;
            found->code_end = start + part->p_memsz;
        }
        if (part->p_type == PT_DYNAMIC) {
            dynamic = (const ElfW(Dyn) *)start;
        }
    }
    if (!is_here) {
        return 0;
    }
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        if (part->p_type == PT_NOTE && found->build_id_bytes == 0) {
            cl_symbol_build_id(found, (const char *)(library->dlpi_addr + part->p_vaddr), part->p_memsz);
        }
    }
    found->offset = found->address - library->dlpi_addr;
    cl_symbol_copy(found->image, library->dlpi_name == NULL ? "" : library->dlpi_name);
    if (dynamic != NULL) {
        cl_symbol_search(found, library->dlpi_addr, dynamic);
    }
    return 1;
}

/* Looks into the whole table of symbols in the library's file, if it has one: a program exports nothing, but a
 * release build may have its symbols. */
static void
cl_symbol_search_file(cl_symbol *found)
{
    const char *path = found->image[0] != 0 ? found->image : "/proc/self/exe";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    void *file = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &about) == 0 && (size_t)about.st_size > sizeof(ElfW(Ehdr))) {
        file = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    struct stat now; /* the program may have closed it meanwhile, and opened a file of its own */
    if (fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == about.st_dev && now.st_ino == about.st_ino) {
        close(fd);
    }
    if (file == MAP_FAILED) {
        return;
    }
    const char *bytes = file;
    size_t size = (size_t)about.st_size;
    const ElfW(Ehdr) *head = file;
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(const void *)(bytes + head->e_shoff);
    int is_sound = memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_shoff < size
                   && head->e_shentsize == sizeof *sections && head->e_shoff % 8 == 0
                   && head->e_shnum <= (size - head->e_shoff) / sizeof *sections;
    for (int i = 0; is_sound && i < head->e_shnum; i++) {
        const ElfW(Shdr) *table = &sections[i];
        if (table->sh_type != SHT_SYMTAB || table->sh_link >= head->e_shnum || table->sh_offset > size
            || table->sh_size > size - table->sh_offset || table->sh_offset % 8 != 0) {
            continue;
        }
        const ElfW(Shdr) *names = &sections[table->sh_link];
        if (names->sh_offset > size || names->sh_size > size - names->sh_offset) {
            continue;
        }
        const ElfW(Sym) *symbol = (const ElfW(Sym) *)(const void *)(bytes + table->sh_offset);
        for (size_t left = table->sh_size / sizeof *symbol; left > 0; left--, symbol++) {
            if ((symbol->st_info & 15u) == STT_FUNC && found->offset - symbol->st_value < symbol->st_size
                && symbol->st_name < names->sh_size) {
                found->is_within = 1;
                found->start = found->address - found->offset + symbol->st_value;
                cl_symbol_copy(found->symbol, bytes + names->sh_offset + symbol->st_name);
                break;
            }
        }
    }
    munmap(file, size);
}

/* A return address is behind its call, perhaps behind its function: one byte less is in it. The main program
 * has an empty name as a library. */
static void
cl_symbol_find(cl_symbol *found, uintptr_t return_address)
{
    memset(found, 0, sizeof *found);
    found->address = return_address - (return_address != 0);
    dl_iterate_phdr(cl_symbol_visit, found);
    if (!found->is_within && found->code_end != 0) {
        cl_symbol_search_file(found);
    }
    if (!found->is_within && found->address - found->start > CL_SYMBOL_NEAR) {
        found->symbol[0] = 0;
    }
    cl_name_readable(found->symbol);
}

#endif

#endif
