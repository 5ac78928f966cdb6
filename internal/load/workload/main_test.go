package workload

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// envParent makes the test binary a parent to be killed: it starts a child,
// tells its PID and waits.
const envParent = "UNTHROTTLE_WORKLOAD_PARENT"

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ChildCommand {
		os.Exit(ChildMain())
	}
	if os.Getenv(envParent) != "" {
		os.Exit(parentToKill())
	}
	os.Exit(m.Run())
}

func parentToKill() int {
	p, err := Start("", Spec{Burners: 1, Sleep: 10 * time.Millisecond, Deadline: time.Minute})
	if err == nil {
		err = p.Go()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-p.Records()
	fmt.Println(p.Pid())
	for range p.Records() { // until killed
	}
	return 0
}
