package gather

import (
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	offers "github.com/unthrottle/unthrottle/internal/kernel/features" // what this host offers

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
)

// pauseComm is the name of the process that holds a pod's namespaces open and
// sleeps for ever. A container that takes the name gains nothing: it may keep
// its pod's quota from being lifted, or not.
const pauseComm = "pause"

// claims are the CPUs that others on this host gave out.
func claims(root fs.FS) []hoststate.Claim {
	kubelet, err := offers.ReadKubelet(root)
	switch {
	case err != nil:
		// What it gave out shows as cpusets narrower than their parent's all the
		// same, but its shared pool does not.
		return []hoststate.Claim{{By: err.Error()}}
	case kubelet.Given.IsEmpty():
		return nil
	}
	return []hoststate.Claim{{CPUs: kubelet.Given, By: fmt.Sprintf("the kubelet's %.40q policy", kubelet.Policy)}}
}

// comm is the name of a process, "" if it cannot be told.
func comm(root fs.FS, pid int) string {
	if pid <= 0 {
		return ""
	}
	file, err := root.Open("proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	defer file.Close()
	name, _ := io.ReadAll(io.LimitReader(file, 64))
	return strings.TrimSpace(string(name))
}
