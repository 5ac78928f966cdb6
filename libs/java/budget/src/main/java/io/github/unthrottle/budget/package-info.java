/**
 * Keeps a Java program within its CPU limit before the kernel stops it: without rights, and with nothing but the JDK.
 *
 * <h2>Problem</h2>
 * A container with a limit of 0.7 CPUs may use 70 ms of CPU time in each 100 ms. Work that could wait uses them up. Then the kernel
 * stops every thread until the next period, and with them health checks, answers that take a millisecond, and locks. The JVM takes
 * 0.7 CPUs for one, and one thread alone uses up the quota.
 *
 * <h2>Rule</h2>
 * <ol>
 * <li>One budget for the process ({@link io.github.unthrottle.budget.CpuBudget#ofProcess}) follows the limit: the least quota / period
 * along the path of its cgroup, v1 or v2. It is read four times a second, so that a resize in place is in force within 2 seconds.
 * <li>A task has a class. IO is short, does not block, and never waits behind the others. APP may wait for some milliseconds;
 * BACKGROUND yields to APP. Each class has so many permits as fit the limit.
 * <li>Pacing: APP and BACKGROUND start only while what is left of this period's quota covers them and a reserve for IO. Else they
 * wait for the next period, or for its last part, which the next quota pays.
 * <li>{@link io.github.unthrottle.budget.CpuBudget#acquireWithin} rejects what would wait too long, as it arrives.
 * <li>A task that waits for something else, such as a database, does so in {@link io.github.unthrottle.budget.CpuBudget#lend}: others
 * use its permit meanwhile.
 * <li>What goes wrong makes the budget let everything run, as without the library, and is told once for each cause: files that cannot
 * be read, a limit that goes away, a task that never returns.
 * </ol>
 *
 * <h2>Example</h2>
 * {@code CpuBudget.ofProcess().run(TaskClass.APP, () -> resize(picture))}. Under 0.7 CPUs APP has one permit. The class's tasks take
 * 20 ms. One starts after 40 ms of the period and of the quota: 30 ms are left. The kernel may keep 5 of
 * them on other CPUs, and 4 are reserved for IO. The next task has to wait.
 *
 * <h2>Limits</h2>
 * A task that runs is not stopped. A long one calls {@link io.github.unthrottle.budget.CpuBudget#checkpoint}, or its CPU time is spent
 * at once. A task's cost is learnt from the earlier ones of its class: classes of very different tasks are paced worse. The phase of
 * the period is learnt from cpu.stat within a second or two of work; until then nothing is held back. The garbage collector and the
 * compiler are not held back. A process that always wants more than the limit gets some 90 % of it.
 *
 * <p>Where APP and BACKGROUND hardly run, or where there is no limit, the library brings nothing.
 *
 * <p>Sources: Twitter's CFS throttling note (classes of threads, sizes by limit); Linux kernel/sched/fair.c at 6.18.
 */
package io.github.unthrottle.budget;
