package scx_test

import (
	"bufio"
	"os"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/widthcap/scx"
)

// TestMain lets the test binary serve as the programs that children run.
func TestMain(m *testing.M) {
	cgrouptest.Child()
	if len(os.Args) > 1 && os.Args[1] == service.Command {
		os.Exit(service.Main())
	}
	if len(os.Args) > 2 && os.Args[1] == holderCommand {
		hold(os.Args[2])
	}
	os.Exit(m.Run())
}

const holderCommand = "scx-test-holder"

// hold loads the scheduler with its maps in a folder, says so, and holds it until it is killed.
func hold(dir string) {
	time.AfterFunc(5*time.Minute, func() { os.Exit(3) })
	s, err := scx.Load(scx.Options{PinDir: dir})
	if err != nil {
		os.Stdout.WriteString("error: " + err.Error() + "\n")
		os.Exit(2)
	}
	os.Stdout.WriteString("loaded\n")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	_ = s.Close()
	os.Exit(0)
}
