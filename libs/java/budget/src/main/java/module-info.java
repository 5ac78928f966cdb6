/** A CPU budget for Java programs under a CPU limit. */
module io.github.unthrottle.budget {
    requires java.management;
    requires static jdk.management;

    exports io.github.unthrottle.budget;
}
