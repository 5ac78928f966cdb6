package journal

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Reserve makes sure that n more bytes fit, beside those that it takes to take back all that is in force, without changing the file's
// length: a full disk is then found out before the first setting is touched rather than between two. What is not used stays reserved for
// taking the transaction back. File systems that cannot reserve are taken at their word.
func (j *Journal) Reserve(n int64) error {
	if n += j.undoing(); n == 0 {
		return nil
	}
	err := unix.Fallocate(int(j.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, j.size, n)
	if err == nil || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return fmt.Errorf("journal %s: no room for %d bytes, so nothing was changed: make room or use another --state-dir: %w",
		File(j.dir), n, err)
}
