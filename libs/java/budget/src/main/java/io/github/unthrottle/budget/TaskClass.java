package io.github.unthrottle.budget;

/** What a task may be made to wait for; the most urgent first. */
public enum TaskClass {
    /** For short tasks that do not block: answers from memory, health checks, the work of an event loop. */
    IO,
    /** For the work of requests. It may wait for some milliseconds. */
    APP,
    /** For work that nobody waits for. It yields to {@link #APP}. */
    BACKGROUND;

    /** The class as gauges name it. */
    public String label() {
        return switch (this) {
            case IO -> "io";
            case APP -> "app";
            case BACKGROUND -> "background";
        };
    }
}
