package io.github.unthrottle.budget;

/** Learns which part of the tasks' wall time is CPU time. */
final class Busy {
    private double part = 1;

    /** Begins with all of it. */
    void restart() {
        part = 1;
    }

    /** Takes the CPU time that the process used while its tasks ran for a time. More than theirs is of IO and the collector. */
    void learn(long used, long taskTime) {
        part += (Math.min(1, (double) used / taskTime) - part) / 4;
    }

    /** The CPU time of a task that takes so long. */
    long cost(long wall) {
        return (long) (wall * part);
    }
}
