package io.github.unthrottle.budget;

/** What a limit means for a process: how many tasks of each class run at once; 0: as many as come. */
record Sizes(int io, int app, int background) {
    static final Sizes UNBOUNDED = new Sizes(0, 0, 0);

    /**
     * What a limit means on a machine with so many CPUs. With pacing the limit is rounded up, since pacing keeps its fraction.
     * Without, it is rounded down: a wider process would use up the quota early. A limit that the machine does not have is none.
     */
    static Sizes of(double limitCpus, int hostCpus, boolean paced) {
        if (!(limitCpus > 0) || limitCpus >= hostCpus) {
            return UNBOUNDED;
        }
        int up = (int) Math.ceil(limitCpus);
        int down = Math.max(1, (int) limitCpus);
        return new Sizes(4 * up, paced ? up : down, Math.max(1, down / 2));
    }

    int of(TaskClass c) {
        return switch (c) {
            case IO -> io;
            case APP -> app;
            case BACKGROUND -> background;
        };
    }
}
