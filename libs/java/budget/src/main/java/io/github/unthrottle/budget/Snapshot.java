package io.github.unthrottle.budget;

import java.util.List;

/**
 * What the budget knows at a moment. What was not measured is null.
 *
 * @param limitCpus the limit in force; null: there is none, or it is not known
 * @param usedCpus what this process used in the last quarter of a second or more. The JDK counts CPU time in ticks of 10 ms
 * @param wantedCpus usedCpus and one CPU for each task that waits: a bound of what would be used without the budget
 * @param periods the kernel's nr_periods of the cgroup with the limit
 * @param stopped the kernel's nr_throttled of that cgroup
 * @param paced whether APP and BACKGROUND hold back now: the phase of the period is known
 * @param classes the classes, in the order of {@link TaskClass}
 */
public record Snapshot(Double limitCpus, Double usedCpus, Double wantedCpus, Long periods, Long stopped, boolean paced,
        List<Tasks> classes) {

    /**
     * A class at a moment. Counts are since the start.
     *
     * @param permits how many tasks may run at once; 0: as many as come
     * @param running tasks now
     * @param waiting tasks now
     * @param overdue those of running that lost their permit, since they do not return
     * @param started tasks that got a permit
     * @param finished tasks that gave it back
     * @param held how many times pacing made the next task wait
     * @param late tasks that were rejected
     * @param expectedNanos how long one more task would wait
     */
    public record Tasks(int permits, int running, int waiting, int overdue, long started, long finished, long held, long late,
            long expectedNanos) {}

    /** A class of the snapshot. */
    public Tasks of(TaskClass c) {
        return classes.get(c.ordinal());
    }
}
