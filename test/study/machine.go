package study

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Machine is the number of CPUs, the processor's model and the kernel's release. What /proc/cpuinfo does not tell is said.
func Machine() string {
	var u unix.Utsname
	_ = unix.Uname(&u) // fails for a bad pointer only
	model, cpus := "unknown processor", 0
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			key, value, _ := strings.Cut(lines.Text(), ":")
			switch strings.TrimSpace(key) {
			case "processor":
				cpus++
			case "model name":
				model = strings.TrimSpace(value)
			}
		}
	}
	return fmt.Sprintf("%s (%s), Linux %s", text.Count(cpus, "CPU"), model, unix.ByteSliceToString(u.Release[:]))
}
