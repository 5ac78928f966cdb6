package policy

import (
	"fmt"
	"io/fs"
	"syscall"
)

// Untrusted says why the agent must not run commands from a file: "" where root
// alone can write it. info are the file and each directory above it, since who
// may write a directory may put another file there. None may be a symbolic
// link: look at what it leads to.
func Untrusted(name string, info ...fs.FileInfo) string {
	if len(info) == 0 {
		return name + " was not looked at"
	}
	for i, at := range info {
		what := name
		if i > 0 {
			what = "the directory " + at.Name() + " above " + name
		}
		owner, ok := at.Sys().(*syscall.Stat_t)
		switch {
		case !ok:
			return "the owner of " + what + " cannot be told"
		case at.Mode()&fs.ModeSymlink != 0:
			return what + " is a symbolic link"
		case i == 0 && !at.Mode().IsRegular():
			return what + " is not a regular file"
		case owner.Uid != 0:
			return fmt.Sprintf("%s belongs to user %d: make it root's (chown root)", what, owner.Uid)
		case i > 0 && at.Mode()&fs.ModeSticky != 0:
			// Who may write there may not replace what belongs to root.
		case at.Mode().Perm()&0o002 != 0:
			return what + " can be written by every user: chmod o-w"
		case at.Mode().Perm()&0o020 != 0:
			return fmt.Sprintf("%s can be written by group %d: chmod g-w", what, owner.Gid)
		}
	}
	return ""
}
