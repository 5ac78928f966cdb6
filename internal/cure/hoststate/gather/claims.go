package gather

import (
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	offers "github.com/unthrottle/unthrottle/internal/kernel/features" // what this host offers

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/text"
)

// pauseComm is the name of the process that holds a pod's namespaces open and
// sleeps for ever. A container that takes the name gains nothing: it may keep
// its pod's quota from being lifted, or not.
const pauseComm = "pause"

// claims are the CPUs, of all of the host, that others on it gave out: none yet, or all where a manager's state is not known.
func claims(root fs.FS, set cpuset.CPUSet) []hoststate.Claim {
	var found []hoststate.Claim
	for _, kubelet := range offers.ReadKubelets(root) {
		by := fmt.Sprintf("the kubelet's %.40q policy", kubelet.Policy)
		if kubelet.Err != nil {
			by = fmt.Sprintf("the kubelet, whose %s is not known (%s),", text.EscapePath(kubelet.File),
				text.Sanitize(kubelet.Err.Error(), 300))
		}
		found = append(found, hoststate.Claim{CPUs: kubelet.Owns(set), By: by})
	}
	return found
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
