/* Programs: what a thread does next once its phase is over; the GIL; channels.
 *
 * Mirrors `reference/threads.py`. The GIL is a lock like others, with two rules of its own: a thread
 * takes it before computing what needs it and lets go before it waits, sleeps or runs native code; and a
 * waiter wakes up after each switch interval, takes the GIL if it is free, and makes an owner that it has
 * seen for all of the interval give it up, which that does not get back before another thread has had it. */
#ifndef CLS_THREADS_H
#define CLS_THREADS_H

#include "locks.h"

/* A program that gets this far in no time at all will never end. */
#define STEPS_AT_ONCE 1000000

/* Gives up the GIL and queues up for it; false if nobody else wants it. */
static int
let_go(state *s, sim_thread *thread, sim_lock *gil)
{
    gil->drop = 0;
    if (gil->wait_first == NULL && !gil->waking) {
        return 0;
    }
    double cost = release(s, thread, gil, 0);
    gil->barred = thread;
    begin_wait(s, thread, gil, 0, cost);
    return 1;
}

/* Whether a thread may run Python code now; if not, it will be advanced again. */
static int
with_gil(state *s, sim_thread *thread)
{
    if (thread->has_gil) {
        return !(s->gil->drop && let_go(s, thread, s->gil));
    }
    if (thread->asked_at < 0) {
        thread->asked_at = s->now;
    }
    double cost = acquire(s, thread, s->gil, 0);
    if (cost > 0) {
        begin(s, thread, TAKE, cost);
    }
    return cost == 0;
}

/* Whether a thread is rid of the GIL; if not, it will be advanced again. */
static inline int
without_gil(state *s, sim_thread *thread)
{
    if (!thread->has_gil) {
        return 1;
    }
    double cost = release(s, thread, s->gil, 0);
    if (cost > 0) {
        begin(s, thread, CALLING, cost);
    }
    return cost == 0;
}

/* Takes the next piece of work; false, and the thread ends, where there is none. */
static int
next_item(state *s, sim_thread *thread)
{
    const queue_row *queue = &s->in->queues[thread->queue];
    int32_t *taken = &s->taken[thread->queue];
    if (*taken == queue->last && queue->endless) {
        *taken = queue->first;
    }
    if (*taken < queue->last) {
        thread->pc = s->in->items[*taken].start;
        thread->stop = s->in->items[*taken].stop;
        ++*taken;
        return 1;
    }
    if (thread->has_gil) {
        release(s, thread, s->gil, 0);
    }
    s->unfinished--;
    thread->stats->end_ns = s->now;
    leave(s, thread, ENDED);
    return 0;
}

/* Draws one of several locks: the first with a share in thousandths, the others alike. */
static int32_t
draw_shard(sim_thread *thread, int32_t shards, uint16_t first_share)
{
    double share = first_share / 1000.0, draw = random_next(&thread->random);
    if (draw < share || shards == 1) {
        return 0;
    }
    int32_t place = 1 + (int32_t)((draw - share) / (1.0 - share) * (shards - 1));
    return place < shards - 1 ? place : shards - 1;
}

/* Counts one operation, and the time since it first asked for something shared. */
static inline void
finish(state *s, sim_thread *thread)
{
    thread->stats->finished++;
    if (thread->asked_at >= 0) {
        thread->stats->response_ns += s->now - thread->asked_at;
        book_response(s, s->now - thread->asked_at);
        thread->asked_at = -1;
    }
}

/* Sends a request; true if that takes the sender time. */
static int
send_request(state *s, sim_thread *thread, sim_lock *channel, double ns, int wants_reply)
{
    request *sent = malloc(sizeof *sent);
    if (sent == NULL) {
        s->heap.failed = 1;
        return 1;
    }
    *sent = (request){NULL, wants_reply ? thread : NULL, ns, s->now};
    *(channel->request_last ? &channel->request_last->next : &channel->request_first) = sent;
    channel->request_last = sent;
    channel->stats->acquires++;
    double cost = channel->policy->acquire_ns;
    sim_thread *server = channel->idle_server;
    if (server != NULL) {
        channel->idle_server = NULL;
        server->parked = 0;
        channel->stats->wakes++;
        wake(s, server, channel->policy->wake_extra_ns);
        cost += channel->policy->wake_call_ns;
    }
    if (wants_reply) {
        thread->lock = channel;
        thread->waiting_since = s->now;
        begin(s, thread, PARKING, cost + channel->policy->park_ns);
        return 1;
    }
    if (cost > 0) {
        begin(s, thread, CALLING, cost);
    }
    return cost > 0;
}

/* Replies to the request that is done and begins the next, after which the server's further steps
 * follow; false if it has to wait. */
static int
serve(state *s, sim_thread *thread, sim_lock *channel, int needs_gil)
{
    if (thread->serves != NULL) {
        sim_thread *client = thread->client;
        thread->serves = NULL;
        book_busy(s, channel);
        if (client != NULL) {
            client->lock = NULL;
            if (client->parked) {
                client->parked = 0;
                client->phase = NEXT;
                client->remaining = 0;
                wake(s, client, channel->policy->wake_extra_ns);
                if (channel->policy->wake_call_ns > 0) {
                    begin(s, thread, CALLING, channel->policy->wake_call_ns);
                    return 0;
                }
            }
        }
    }
    request *first = channel->request_first;
    if (first == NULL) {
        if (!without_gil(s, thread)) {
            return 0;
        }
        channel->idle_server = thread;
        thread->parked = 1;
        channel->stats->parks++;
        leave(s, thread, BLOCKED);
        return 0;
    }
    channel->request_first = first->next;
    if (first->next == NULL) {
        channel->request_last = NULL;
    }
    thread->serves = channel;
    thread->client = first->client;
    double waited = s->now - first->sent_at;
    channel->stats->contended += waited > 0;
    channel->stats->wait_ns += waited;
    if (waited > channel->stats->longest_wait_ns) {
        channel->stats->longest_wait_ns = waited;
    }
    if (first->client != NULL) {
        first->client->stats->wait_ns += waited;
    }
    channel->busy_since = s->now;
    thread->pending = first->ns;
    thread->pending_gil = needs_gil;
    thread->pc++;
    free(first);
    return 1;
}

/* Does the next steps of a running thread, up to the first that takes time. */
static void
advance(state *s, sim_thread *thread)
{
    thread->phase = NEXT;
    thread->remaining = 0;
    for (int steps = 0; steps < STEPS_AT_ONCE; steps++) {
        if (thread->pending > 0) {
            if (s->gil != NULL
                && !(thread->pending_gil ? with_gil(s, thread) : without_gil(s, thread))) {
                return;
            }
            double ns = thread->pending;
            thread->pending = 0;
            begin(s, thread, COMPUTE, ns);
            return;
        }
        if (thread->pc == thread->stop) {
            if (!next_item(s, thread)) {
                return;
            }
            continue;
        }
        const op_row *op = &s->in->ops[thread->pc];
        double cost;
        switch (op->code) {
        case OP_COMPUTE:
            thread->pc++;
            thread->pending = duration(thread, op->ns, op->spread);
            thread->pending_gil = op->flags & OP_GIL;
            break;
        case OP_SLEEP:
            if (!without_gil(s, thread)) {
                return;
            }
            thread->pc++;
            leave(s, thread, BLOCKED);
            wake(s, thread, duration(thread, op->ns, op->spread));
            return;
        case OP_ACQUIRE:
            if (s->gil != NULL && s->locks[op->target].policy->gil_first
                && !with_gil(s, thread)) {
                return;
            }
            thread->pc++;
            if (thread->asked_at < 0) {
                thread->asked_at = s->now;
            }
            int32_t target = op->target;
            if (op->flags & OP_SHARD) {
                target += draw_shard(thread, (int32_t)op->ns, op->spread);
                thread->shard = target;
            }
            cost = acquire(s, thread, &s->locks[target], (op->flags & OP_READ) != 0);
            if (cost > 0) {
                begin(s, thread, TAKE, cost);
            }
            if (cost != 0) {
                return;
            }
            break;
        case OP_RELEASE:
            thread->pc++;
            cost = release(s, thread, &s->locks[op->flags & OP_SHARD ? thread->shard : op->target],
                           (op->flags & OP_READ) != 0);
            if (cost > 0) {
                begin(s, thread, CALLING, cost);
                return;
            }
            break;
        case OP_CALL:
        case OP_POST:
            if (op->code == OP_CALL && !without_gil(s, thread)) {
                return;
            }
            thread->pc++;
            if (thread->asked_at < 0) {
                thread->asked_at = s->now;
            }
            if (send_request(s, thread, &s->locks[op->target],
                             duration(thread, op->ns, op->spread), op->code == OP_CALL)) {
                return;
            }
            break;
        case OP_SERVE:
            if (!serve(s, thread, &s->locks[op->target], op->flags & OP_GIL)) {
                return;
            }
            break;
        default:
            thread->pc++;
            finish(s, thread);
        }
    }
    s->limit = s->handled;
}

/* Asks the owner of the GIL to let go. */
static void
demand_gil(state *s)
{
    sim_thread *owner = s->gil->owner;
    if (owner == NULL) {
        return;
    }
    s->gil->drop = 1;
    if (owner->place == RUNNING && owner->phase == COMPUTE) {
        settle(s, owner);
        owner->pending = owner->remaining;
        owner->pending_gil = 1;
        owner->stamp++;
        advance(s, owner);
    }
}

/* Handles the end of a thread's phase. */
static inline void
phase_over(state *s, sim_thread *thread, uint32_t stamp)
{
    if (stamp != thread->stamp || thread->place != RUNNING) {
        return;
    }
    settle(s, thread);
    int go_on = 1, demands;
    switch (thread->phase) {
    case SPIN:
        go_on = spin_over(s, thread);
        break;
    case POLL:
        go_on = poll(s, thread);
        break;
    case PARKING:
        demands = thread->demands;
        thread->demands = 0;
        go_on = park(s, thread);
        if (demands && thread->parked) {
            demand_gil(s);
        }
        break;
    case RETRY:
        go_on = retry(s, thread);
        break;
    default:
        break;
    }
    if (go_on) {
        advance(s, thread);
    }
}

/* Wakes a thread that has waited for the GIL for a whole switch interval: it looks for itself. */
static void
interval_over(state *s, sim_thread *thread)
{
    sim_lock *gil = s->gil;
    thread->watched = 0;
    if (thread->lock != gil || !thread->parked) {
        return;
    }
    if (s->now < thread->demand_at) {
        watch(s, thread, thread->demand_at);
        return;
    }
    if (gil->barred == thread) {
        watch(s, thread, s->now + s->machine->gil_interval_ns);
        return;
    }
    waiters_remove(gil, thread);
    thread->parked = 0;
    thread->timed_out = 1;
    thread->phase = RETRY;
    thread->remaining = 0;
    wake(s, thread, 0);
}

#endif
