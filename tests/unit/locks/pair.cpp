// Two threads hold one std::mutex each and want the other's; others wait for what records no owner.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <sys/syscall.h>
#include <unistd.h>

static std::mutex one, other, saying;
static std::shared_mutex shared;
static std::atomic<int> met{0};

static void say(const char *name) {
    std::lock_guard<std::mutex> guard(saying);
    std::printf("%s %ld\n", name, syscall(SYS_gettid));
    std::fflush(stdout);
}

static void take(const char *name, std::mutex &first, std::mutex &second) {
    std::lock_guard<std::mutex> held(first);
    met++;
    while (met < 2) std::this_thread::yield();
    say(name);
    std::lock_guard<std::mutex> wanted(second);
}

int main() {
    std::condition_variable condition;
    std::mutex of_condition;
    std::promise<int> promise;
    std::unique_lock<std::shared_mutex> held(shared);
    std::thread a([] { take("first", one, other); }), b([] { take("second", other, one); });
    std::thread c([&] { std::unique_lock<std::mutex> guard(of_condition); say("condition"); for (;;) condition.wait(guard); });
    std::thread d([&] { say("future"); promise.get_future().get(); });
    std::thread e([] { say("shared"); std::shared_lock<std::shared_mutex> wanted(shared); });
    say("main");
    a.join();
}
