package io.github.unthrottle.budget;

/** A pool of threads whose size can follow the limit. {@link Pools} has those of the JDK. */
public interface Pool {
    /** The pool as messages name it. */
    String name();

    /** How many threads work at once at most. */
    int size();

    /**
     * Makes another number the most, while the pool works.
     *
     * @throws UnsupportedOperationException if the pool takes it at the start only; the message has the setting
     */
    void resize(int threads);
}
