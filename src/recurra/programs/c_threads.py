"""C that shares the parts of a product out among threads, which sleep while there is nothing to do.

Which thread computes a part does not change it, so an answer is the same with any number of threads.
"""

from __future__ import annotations

THREADS = """\
typedef void part_of_work(const void *given, int64_t part);

#ifdef RECURRA_THREADS
#include <pthread.h>
#include <unistd.h>

/* Multiplications that are worth waking somebody. */
#ifndef WORTH_SHARING
#define WORTH_SHARING 1500000
#endif
#define MOST_THREADS 64

static struct {
    pthread_mutex_t use, lock; /* held by the call that shares its work out, and around what follows */
    pthread_cond_t wake, done;
    pid_t process;
    int workers, wanted, working, is_open;
    unsigned round;
    int64_t next, parts;
    part_of_work *work;
    const void *given;
} team = {.use = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static void take_parts(void) {
    int64_t part;
    while ((part = __atomic_fetch_add(&team.next, 1, __ATOMIC_RELAXED)) < team.parts) team.work(team.given, part);
}

static void *worker(void *number) {
    unsigned seen = 0;
    pthread_mutex_lock(&team.lock);
    for (;;) {
        while (seen == team.round || !team.is_open || (int)(intptr_t)number >= team.wanted) {
            seen = team.round;
            pthread_cond_wait(&team.wake, &team.lock);
        }
        seen = team.round;
        team.working++;
        pthread_mutex_unlock(&team.lock);
        take_parts();
        pthread_mutex_lock(&team.lock);
        if (!--team.working) pthread_cond_signal(&team.done);
    }
    return NULL;
}

/* How many threads products use from now on; returns how many there are. */
static int threads_of(int wanted) {
    wanted = wanted < 1 ? 1 : wanted > MOST_THREADS ? MOST_THREADS : wanted;
    pthread_mutex_lock(&team.use);
    pthread_mutex_lock(&team.lock);
    if (team.process != getpid()) team.workers = 0, team.process = getpid(); /* threads do not outlive a fork */
    while (team.workers < wanted - 1) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker, (void *)(intptr_t)team.workers)) break;
        pthread_detach(thread);
        team.workers++;
    }
    team.wanted = team.workers < wanted - 1 ? team.workers : wanted - 1;
    const int found = team.wanted + 1;
    pthread_mutex_unlock(&team.lock);
    pthread_mutex_unlock(&team.use);
    return found;
}

static inline UNUSED int64_t threads_now(void) { return team.wanted + 1; }

/* All parts of some work; another call that shares work out at the same time does without. */
static UNUSED void share_out(part_of_work *work, const void *given, int64_t parts, double cost) {
    if (parts < 2 || cost < WORTH_SHARING || !team.wanted || team.process != getpid() ||
        pthread_mutex_trylock(&team.use)) {
        for (int64_t part = 0; part < parts; part++) work(given, part);
        return;
    }
    pthread_mutex_lock(&team.lock);
    team.work = work, team.given = given, team.parts = parts, team.next = 0, team.is_open = 1, team.round++;
    pthread_cond_broadcast(&team.wake);
    pthread_mutex_unlock(&team.lock);
    take_parts();
    pthread_mutex_lock(&team.lock);
    team.is_open = 0;
    while (team.working) pthread_cond_wait(&team.done, &team.lock);
    pthread_mutex_unlock(&team.lock);
    pthread_mutex_unlock(&team.use);
}
#else
static inline UNUSED int threads_of(int wanted) { return (void)wanted, 1; }
static inline UNUSED int64_t threads_now(void) { return 1; }
static UNUSED void share_out(part_of_work *work, const void *given, int64_t parts, double cost) {
    (void)cost;
    for (int64_t part = 0; part < parts; part++) work(given, part);
}
#endif
"""
