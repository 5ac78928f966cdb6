package container

import (
	"errors"
	"io/fs"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

// maxAged bounds how many processes Age looks at.
const maxAged = 256

// Age is for how long a container's oldest process has run, to 10 ms: of its first 256. proc stands for /proc. False means
// that no process of it can be read.
func Age(h *cgroup.Host, proc fs.FS, c Container) (oldest time.Duration, ok bool) {
	uptime, err := fs.ReadFile(proc, "uptime")
	if err != nil {
		return 0, false
	}
	looked := 0
	err = h.Walk(c.Group.Path, func(path string) error {
		pids, err := h.Members(path)
		if err != nil {
			return nil // it went meanwhile
		}
		for _, pid := range pids {
			if looked++; looked > maxAged {
				return fs.SkipAll
			}
			stat, err := fs.ReadFile(proc, strconv.Itoa(pid)+"/stat")
			if err != nil {
				continue // it ended meanwhile
			}
			if age, err := procfs.Age(string(stat), string(uptime)); err == nil && (!ok || age > oldest) {
				oldest, ok = age, true
			}
		}
		return nil
	})
	return oldest, ok && (err == nil || errors.Is(err, cgroup.ErrNoCgroup))
}
