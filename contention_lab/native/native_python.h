/* Python stacks of waits for native locks, on builds without a GIL.
 *
 * A thread that waits has let go of its thread state by then, and comes back to Python without a call that could be
 * seen: so at the wait it reads its own frames. It may have any lock in hand, an allocator's, too: it notes places
 * into room that is there, and pins code objects that are new. The writer makes stacks of them.
 */
#ifndef CL_NATIVE_PYTHON_H
#define CL_NATIVE_PYTHON_H

#include "native_waits.h"
#include "session.h"
#include "stacks.h"

#if CL_FREE_THREADED

#  define CL_NATIVE_PLACES 64u

/* A place in Python code: the id of the frame, or where no recording has met it yet, what that will be made of. */
typedef struct {
    PyCodeObject *code; /* NULL: `id` is known */
    uint32_t id;        /* else the line */
    int lasti;
} cl_native_place;

typedef struct {
    uint32_t count, is_cut;
    cl_native_place at[CL_NATIVE_PLACES];
} cl_native_places;

static cl_native_places *cl_native_room; /* one for each slot of the ring; kept, as those are */

static cl_native_places *
cl_native_places_of(const cl_native_wait *wait)
{
    const cl_native_slot *slots = atomic_load_explicit(&cl_native_ring.slot, memory_order_relaxed);
    const char *slot = (const char *)wait - offsetof(cl_native_slot, wait);
    size_t at = (size_t)(slot - (const char *)slots) / sizeof *slots;
    return slots == NULL || cl_native_room == NULL ? NULL : &cl_native_room[at];
}

static void
cl_native_python_begin(void)
{
    if (cl_native_room == NULL) {
        cl_native_room = calloc(CL_NATIVE_SLOTS, sizeof *cl_native_room);
    }
}

/* Notes where the calling thread is in Python code. */
static void
cl_native_places_take(cl_native_places *places)
{
    int came_back;
    cl_position position;
    PyThreadState *tstate = cl_interpreter_lives() ? cl_own_frames_hold(&came_back) : NULL;
    places->count = places->is_cut = 0;
    if (tstate == NULL) {
        return;
    }
    cl_cursor cursor = cl_cursor_begin_at(tstate);
    while (cl_cursor_next(&cursor, &position)) {
        if (places->count == CL_NATIVE_PLACES) {
            places->is_cut = 1;
            break;
        }
        cl_native_place *place = &places->at[places->count++];
        *place = (cl_native_place){.id = cl_frame_find(position.code, position.lasti)};
        if (place->id == 0) {
            *place = (cl_native_place){position.code, cl_frame_line(position.code, position.lasti), position.lasti};
            if (cl_code_find(position.code) == 0) {
                cl_code_keep(position.code);
            }
        }
    }
    cl_cursor_end(&cursor);
    cl_own_frames_release(tstate, came_back);
}

/* The rest is the writer's. A code object that two waits have pinned keeps both references. */
static uint32_t
cl_native_place_frame(const cl_native_place *place)
{
    if (place->code == NULL) {
        return place->id;
    }
    uint32_t id = cl_frame_find(place->code, place->lasti);
    uint32_t code = id != 0 ? 0 : cl_code_find(place->code);
    int added;
    code = id != 0 || code != 0 ? code : cl_code_enter(place->code, &added);
    return code == 0 ? id : cl_frame_enter(place->code, code, place->lasti, place->id);
}

/* The Python stack of a wait in the ring. */
static uint32_t
cl_native_python_stack(const cl_native_wait *wait)
{
    const cl_native_places *places = cl_native_places_of(wait);
    cl_stack_builder builder;
    cl_stack_build(&builder, cl_session.stack_depth);
    for (uint32_t i = 0; places != NULL && i < places->count && cl_stack_has_room(&builder); i++) {
        uint32_t id = cl_native_place_frame(&places->at[i]);
        int whose = id == 0 ? CL_USER : ((const cl_frame_item *)cl_table_item(&cl_frames, id))->whose;
        cl_stack_put(&builder, id, whose);
    }
    if (places != NULL && places->is_cut) {
        builder.truncated = CL_STACK_TRUNCATED;
    }
    return cl_stack_intern(&builder);
}

/* Passes a wait on, with the places where its thread is. */
static void
cl_native_push_placed(const cl_native_wait *wait)
{
    cl_native_slot *slot = cl_native_reserve();
    if (slot != NULL) {
        slot->wait = *wait;
        cl_native_places *places = cl_native_places_of(&slot->wait);
        if (places != NULL) {
            cl_native_places_take(places);
        }
        cl_native_pass_on(slot);
    }
}

#else

static void
cl_native_python_begin(void)
{
}

static uint32_t
cl_native_python_stack(const cl_native_wait *wait)
{
    return wait->stack;
}

#endif

#endif
