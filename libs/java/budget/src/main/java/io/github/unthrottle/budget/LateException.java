package io.github.unthrottle.budget;

/** A task would start later than its objective, or has waited so long. It has no stack trace: a rejection is cheap. */
public final class LateException extends Exception {
    private static final long serialVersionUID = 1;

    LateException() {
        super("the task would start later than its objective; try again later, or elsewhere", null, false, false);
    }
}
