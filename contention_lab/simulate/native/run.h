/* The loop over events, from the start to the end of the simulated time.
 *
 * Mirrors `reference/run.py`, except that it can pause, so that the caller may look for signals. */
#ifndef CLS_RUN_H
#define CLS_RUN_H

#include "threads.h"

static void
state_free(state *s)
{
    for (size_t i = 0; s->locks != NULL && i < s->in->lock_count; i++) {
        while (s->locks[i].request_first != NULL) {
            request *first = s->locks[i].request_first;
            s->locks[i].request_first = first->next;
            free(first);
        }
    }
    free(s->threads);
    free(s->cores);
    free(s->locks);
    free(s->taken);
    free(s->heap.events);
}

/* False if memory runs out; `state_free` is due in any case. */
static int
state_make(state *s, const tables *in, results *out)
{
    memset(s, 0, sizeof *s);
    s->in = in;
    s->out = out;
    s->machine = in->machine;
    s->threads = calloc(in->thread_count + 1, sizeof *s->threads);
    s->cores = calloc((size_t)in->machine->cores, sizeof *s->cores);
    s->locks = calloc(in->lock_count + 1, sizeof *s->locks);
    s->taken = calloc(in->queue_count + 1, sizeof *s->taken);
    if (s->threads == NULL || s->cores == NULL || s->locks == NULL || s->taken == NULL) {
        return 0;
    }
    s->seed = in->machine->seed;
    s->limit = in->machine->events_limit;
    s->idle = in->machine->cores;
    for (size_t i = 0; i < in->lock_count; i++) {
        s->locks[i].policy = &in->locks[i];
        s->locks[i].costs = &in->costs[in->locks[i].costs];
        s->locks[i].stats = &out->locks[i];
        s->locks[i].index = (int32_t)i;
    }
    s->gil = in->machine->gil >= 0 ? &s->locks[in->machine->gil] : NULL;
    for (int32_t i = 0; i < in->machine->cores; i++) {
        s->cores[i].index = i;
    }
    for (size_t i = 0; i < in->queue_count; i++) {
        s->taken[i] = in->queues[i].first;
    }
    for (size_t i = 0; i < in->thread_count; i++) {
        sim_thread *thread = &s->threads[i];
        thread->index = (int32_t)i;
        thread->queue = in->threads[i];
        thread->random = s->seed + (i + 1) * 0xD1342543DE82EF95u;
        thread->asked_at = -1;
        thread->stats = &out->threads[i];
        s->unfinished += !in->queues[thread->queue].endless;
    }
    s->finite = s->unfinished > 0;
    if (s->machine->warmup_ns > 0) {
        plan(s, s->machine->warmup_ns, RESET, 0, 0);
    }
    for (size_t i = 0; i < in->thread_count; i++) {
        make_ready(s, &s->threads[i]);
    }
    return !s->heap.failed;
}

static void
book_all(state *s)
{
    for (size_t i = 0; i < s->in->thread_count; i++) {
        sim_thread *thread = &s->threads[i];
        if (thread->place == RUNNING) {
            settle(s, thread);
        }
        if (thread->serves != NULL) {
            book_busy(s, thread->serves);
        }
    }
    for (size_t i = 0; i < s->in->lock_count; i++) {
        if (!is_free(&s->locks[i])) {
            book_busy(s, &s->locks[i]);
        }
    }
}

/* Ends the warm-up: what happened so far does not count. */
static void
forget(state *s)
{
    book_all(s);
    memset(s->out->locks, 0, s->in->lock_count * sizeof *s->out->locks);
    memset(s->out->threads, 0, s->in->thread_count * sizeof *s->out->threads);
    memset(s->out->responses, 0, s->out->response_count * sizeof *s->out->responses);
    s->out->totals->preemptions = 0;
    s->measured_from = s->now;
}

static void
finish_run(state *s, int reason)
{
    if (s->finite && s->unfinished == 0) {
        reason = REASON_DONE;
    }
    book_all(s);
    totals_row *totals = s->out->totals;
    totals->now_ns = s->now;
    totals->measured_ns = s->now - s->measured_from;
    totals->events = s->handled;
    totals->reason = reason;
    totals->unfinished = (int32_t)s->unfinished;
}

/* Handles up to `events` events; true once the simulation has ended and the results are complete. */
static int
run_some(state *s, uint64_t events)
{
    for (uint64_t pause = s->handled + events; s->handled < pause;) {
        if (s->heap.failed) {
            return 1;
        }
        if (s->handled >= s->limit) {
            finish_run(s, REASON_LIMIT);
            return 1;
        }
        if (s->heap.count == 0 || (s->finite && s->unfinished == 0)) {
            finish_run(s, REASON_STUCK);
            return 1;
        }
        event next = heap_pop(&s->heap);
        if (next.time > s->machine->end_ns) {
            s->now = s->machine->end_ns;
            finish_run(s, REASON_TIME);
            return 1;
        }
        s->now = next.time;
        if (s->handled < s->out->event_count) {
            s->out->events[s->handled] = (event_row){next.time, next.kind, next.who};
        }
        s->handled++;
        switch (next.kind) {
        case END:
            phase_over(s, &s->threads[next.who], next.stamp);
            break;
        case SLICE:
            slice_over(s, &s->cores[next.who], next.stamp);
            break;
        case WAKE:
            if (next.stamp == s->threads[next.who].stamp
                && s->threads[next.who].place == BLOCKED) {
                make_ready(s, &s->threads[next.who]);
            }
            break;
        case CLAIM: {
            sim_thread *thread = claim(s, &s->locks[next.who]);
            if (thread != NULL) {
                advance(s, thread);
            }
            break;
        }
        case SWITCH:
            interval_over(s, &s->threads[next.who]);
            break;
        default:
            forget(s);
        }
    }
    return 0;
}

#endif
