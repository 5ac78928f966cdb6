package io.github.unthrottle.budget;

/** A running mean with its mean deviation, as TCP keeps its round trip times (RFC 6298). */
final class Mean {
    private long value;
    private long deviation;
    private boolean any;

    void add(long v) {
        if (!any) {
            value = v;
            deviation = v / 2;
            any = true;
            return;
        }
        long off = v - value;
        value += off / 8;
        deviation += (Math.abs(off) - deviation) / 4;
    }

    long value() {
        return value;
    }

    /** A value that few exceed. */
    long high() {
        return value + 2 * deviation;
    }
}
