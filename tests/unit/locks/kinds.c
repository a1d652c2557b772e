/* One thread waits for each kind of lock there is. Each says its name and tid, then waits; "ready" comes last. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NORMAL, RECURSIVE, ERRORCHECK, ADAPTIVE, TIMED, SHARED, ROBUST, PI, DEAD, MUTEXES };
static const char *names[MUTEXES] = {"normal", "recursive", "errorcheck", "adaptive", "timed", "shared", "robust", "pi", "dead"};
static pthread_mutex_t mutexes[MUTEXES], own = PTHREAD_MUTEX_INITIALIZER, ring[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER, read_only = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t of_condition = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier, met;
static sem_t semaphore, said;
static pthread_t holder_thread;
static struct timespec later;

static void say(const char *name) {
    static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&output);
    printf("%s %ld\n", name, syscall(SYS_gettid));
    fflush(stdout);
    pthread_mutex_unlock(&output);
    sem_post(&said);
}

static void *die_holding(void *unused) {
    pthread_mutex_lock(&mutexes[DEAD]);
    return unused;
}

static void *holder(void *unused) {
    for (int at = 0; at < MUTEXES; at++)
        if (at != DEAD) pthread_mutex_lock(&mutexes[at]);
    pthread_rwlock_wrlock(&written);
    pthread_rwlock_rdlock(&read_only);
    say("holder");
    for (;;) pause();
    return unused;
}

static void *mutex_waiter(void *number) {
    long at = (long)number;
    say(names[at]);
    if (at == TIMED) pthread_mutex_timedlock(&mutexes[at], &later);
    else pthread_mutex_lock(&mutexes[at]);
    return 0;
}

static void *twice(void *unused) { say("twice"); pthread_mutex_lock(&own); pthread_mutex_lock(&own); return unused; }
static void *first(void *unused) { pthread_mutex_lock(&ring[0]); pthread_barrier_wait(&met); say("first"); pthread_mutex_lock(&ring[1]); return unused; }
static void *second(void *unused) { pthread_mutex_lock(&ring[1]); pthread_barrier_wait(&met); say("second"); pthread_mutex_lock(&ring[0]); return unused; }
static void *reader(void *unused) { say("reader"); pthread_rwlock_rdlock(&written); return unused; }
static void *writer(void *unused) { say("writer"); pthread_rwlock_wrlock(&written); return unused; }
static void *kept_out(void *unused) { say("kept-out"); pthread_rwlock_wrlock(&read_only); return unused; }
static void *joiner(void *unused) { say("joiner"); pthread_join(holder_thread, 0); return unused; }
static void *by_semaphore(void *unused) { say("semaphore"); sem_wait(&semaphore); return unused; }
static void *at_barrier(void *unused) { say("barrier"); pthread_barrier_wait(&barrier); return unused; }
static void *by_condition(void *unused) { pthread_mutex_lock(&of_condition); say("condition"); for (;;) pthread_cond_wait(&condition, &of_condition); return unused; }
static void *by_timed_condition(void *unused) { pthread_mutex_lock(&of_condition); say("timed-condition"); pthread_cond_timedwait(&condition, &of_condition, &later); return unused; }

static void start(void *(*act)(void *), void *argument, pthread_t *thread) {
    pthread_t unused;
    pthread_create(thread ? thread : &unused, 0, act, argument);
}

static void *plain_wait(void *word) {
    say("plain");
    syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 2, 0, 0, 0);
    return 0;
}

static int pair(void) {
    /* Two processes hold one mutex each and want the other's. */
    struct { pthread_mutex_t mutex[2]; sem_t taken[2]; } *common = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    for (int at = 0; at < 2; at++) { pthread_mutex_init(&common->mutex[at], &attributes); sem_init(&common->taken[at], 1, 0); }
    int mine = fork() ? 0 : 1;
    if (mine) prctl(PR_SET_PDEATHSIG, SIGKILL);
    pthread_mutex_lock(&common->mutex[mine]);
    sem_post(&common->taken[mine]);
    sem_wait(&common->taken[!mine]);
    printf("%s %d\n", mine ? "child" : "parent", getpid());
    fflush(stdout);
    pthread_mutex_lock(&common->mutex[!mine]);
    return 0;
}

static void *hold_first(void *unused) { pthread_mutex_lock(&ring[0]); say("parent"); for (;;) pause(); return unused; }

static int forked(void) {
    /* The child has a copy of a mutex that another thread of its parent holds. */
    sem_init(&said, 0, 0);
    start(hold_first, 0, 0);
    sem_wait(&said);
    if (!fork()) { prctl(PR_SET_PDEATHSIG, SIGKILL); say("child"); pthread_mutex_lock(&ring[0]); }
    for (;;) pause();
}

static int shared(const char *act, const char *path) {
    /* A mutex in a file: "hold" makes it and keeps it, "die" makes it and ends, "want" waits for it. */
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, 4096)) return 1;
    pthread_mutex_t *mutex = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (strcmp(act, "want")) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_mutex_init(mutex, &attributes);
        pthread_mutex_lock(mutex);
    }
    sem_init(&said, 0, 0);
    say(act);
    if (!strcmp(act, "want")) pthread_mutex_lock(mutex);
    if (!strcmp(act, "die")) return 0;
    for (;;) pause();
}

static int foreign(void) {
    /* A lock as Rust's std has it: a word that is 2, then data of its own which look like an owner and a count. */
    static unsigned words[10] __attribute__((aligned(64)));
    sem_init(&said, 0, 0);
    words[0] = 2; words[2] = syscall(SYS_gettid); words[3] = 1;
    say("bitset");
    pthread_t thread;
    pthread_create(&thread, 0, plain_wait, words);
    syscall(SYS_futex, words, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 2, 0, 0, ~0u);
    return 0;
}

int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "pair")) return pair();
    if (count > 1 && !strcmp(arguments[1], "forked")) return forked();
    if (count > 1 && !strcmp(arguments[1], "foreign")) return foreign();
    if (count > 2) return shared(arguments[1], arguments[2]);
    pthread_mutexattr_t attributes;
    clock_gettime(CLOCK_REALTIME, &later);
    later.tv_sec += 100000;
    for (int at = 0; at < MUTEXES; at++) {
        pthread_mutexattr_init(&attributes);
        if (at == RECURSIVE) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
        if (at == ERRORCHECK) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
        if (at == ADAPTIVE) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
        if (at == SHARED) pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        if (at == ROBUST) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        if (at == PI) pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
        pthread_mutex_init(&mutexes[at], &attributes);
    }
    sem_init(&semaphore, 0, 0);
    sem_init(&said, 0, 0);
    pthread_barrier_init(&barrier, 0, 2);
    pthread_barrier_init(&met, 0, 2);
    pthread_t dying;
    start(die_holding, 0, &dying);
    pthread_join(dying, 0);
    start(holder, 0, &holder_thread);
    sem_wait(&said);
    for (long at = 0; at < MUTEXES; at++) start(mutex_waiter, (void *)at, 0);
    void *(*others[])(void *) = {twice, first, second, reader, writer, kept_out, joiner, by_semaphore, at_barrier, by_condition, by_timed_condition};
    int number = sizeof others / sizeof *others;
    for (int at = 0; at < number; at++) start(others[at], 0, 0);
    for (int at = 0; at < MUTEXES + number; at++) sem_wait(&said);
    printf("ready %d\n", getpid());
    fflush(stdout);
    for (;;) pause();
}
