package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Handle is what the journal needs of its file; tests put a failing one between.
type Handle interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// Options are for Open; the zero value is fine.
type Options struct {
	// Wait is how long to wait for another writer; 0 is DefaultWait, below 0 not at all.
	Wait time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Keep is how many closed transactions stay for History; 0 is DefaultKeep.
	Keep int
	// Wrap, if set, stands between the journal and its file.
	Wrap func(Handle) Handle
}

// DefaultKeep is how many closed transactions are kept.
const DefaultKeep = 1000

// Newer says that the journal was written by a later version.
type Newer struct {
	File    string
	Version int
}

// Error names the way out.
func (e *Newer) Error() string {
	return fmt.Sprintf("journal %s has format %d, this program writes format %d: it is left as it is; use the newer "+
		"unthrottle that wrote it, or another --state-dir", e.File, e.Version, Version)
}

// Journal is a journal that is open for writing; its lock is held until Close. Not for several goroutines.
type Journal struct {
	dir   string
	opts  Options
	lock  *os.File
	file  *os.File
	h     Handle
	state *State
	size  int64
	// broken is set when the file's end could not be brought back to an intact line.
	broken error
	// dead is set when the file was replaced and the new one could not be opened.
	dead error
	// unsettled: the file was replaced, and its name is not yet known to be on the disk.
	unsettled bool
	// notKept is why damaged lines are still in the file.
	notKept error
}

// Open locks the state directory (made if missing), reads the journal, cuts off a torn tail and keeps damaged lines
// aside (see State.Damage and NotKept). Errors: *Locked, *Newer, *NotRegular.
func Open(ctx context.Context, stateDir string, o Options) (*Journal, error) {
	switch {
	case o.Wait == 0:
		o.Wait = DefaultWait
	case o.Wait < 0:
		o.Wait = 0
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	if err := makeStateDir(stateDir); err != nil {
		return nil, err
	}
	lock, err := takeLock(ctx, stateDir, o.Wait)
	if err != nil {
		return nil, err
	}
	j := &Journal{dir: stateDir, opts: o, lock: lock}
	j.removeLeftovers()
	if err := j.load(); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// Peek reads the journal for a plan. It takes no lock and makes no directory. Of what it returns only State and Suppose may
// be called. Errors: *Newer, *NotRegular.
func Peek(stateDir string) (*Journal, error) {
	data, err := read(stateDir)
	if err != nil {
		return nil, err
	}
	s := Parse(data)
	if s.Version > Version {
		return nil, &Newer{File: File(stateDir), Version: s.Version}
	}
	return &Journal{dir: stateDir, state: s}, nil
}

// Suppose makes State what it would be after one more record, which is written nowhere.
func (j *Journal) Suppose(r Record) { j.state.fold(r, 0) }

// makeStateDir makes the directory for us alone, or checks the one that is there.
func makeStateDir(dir string) error {
	dir = filepath.Clean(dir) // as File has it: ".." behind a link would be elsewhere
	if err := checkLinks(dir); err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("state directory: %w", wayOut(err))
		}
		return wayOut(syncDir(filepath.Dir(dir)))
	}
	return CheckStateDir(dir)
}

// CheckStateDir refuses a directory that other users own, can write to, or led us to by a symbolic link: a user who can write the
// journal decides what restore writes as root. One that does not exist is fine: it is made with the first write.
func CheckStateDir(dir string) error {
	dir = filepath.Clean(dir)
	if err := checkLinks(dir); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("state directory: %w", wayOut(err))
	}
	if !info.IsDir() {
		return fmt.Errorf("state directory %s is no directory: use another --state-dir", dir)
	}
	if uid, others := ofOthers(info); others {
		return fmt.Errorf("state directory %s belongs to uid %d, who could change what uid %d does: check its files "+
			"and chown it to %d, or use another --state-dir", dir, uid, os.Geteuid(), os.Geteuid())
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("state directory %s can be written by others (mode %#o): chmod go-w %s, or use another "+
			"--state-dir", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// ofOthers tells whose a file is, and whether that is neither root nor this process's user.
func ofOthers(info fs.FileInfo) (uid uint32, others bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return stat.Uid, stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}

// mostLinks is how many symbolic links the kernel follows in a path (MAXSYMLINKS of path_resolution(7)).
const mostLinks = 40

// checkLinks refuses a path on which another user's symbolic link lies: that user decides where it leads, now and each time.
func checkLinks(dir string) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	at, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, part) // what is before it has no links any more
		info, err := os.Lstat(next)
		if err != nil {
			return nil // it is made, or opening it says what is wrong
		}
		if info.Mode().Type() != fs.ModeSymlink {
			at = next
			continue
		}
		if uid, others := ofOthers(info); others {
			return fmt.Errorf("state directory %s: the symbolic link %s belongs to uid %d, who decides where it leads: use a "+
				"--state-dir without it", dir, next, uid)
		}
		if links++; links > mostLinks {
			return fmt.Errorf("state directory %s: %w", dir, wayOut(unix.ELOOP))
		}
		to, err := os.Readlink(next)
		if err != nil {
			return fmt.Errorf("state directory: %w", wayOut(err))
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	// Some file systems cannot sync a directory and say EINVAL; nothing more can be done there.
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}

func (j *Journal) load() error {
	data, err := read(j.dir)
	if err != nil {
		return err
	}
	s := Parse(data)
	if s.Version > Version {
		return &Newer{File: File(j.dir), Version: s.Version}
	}
	j.state = s
	_, statErr := os.Lstat(File(j.dir))
	if err := j.openFile(); err != nil {
		return err
	}
	if statErr != nil {
		if err := syncDir(j.dir); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	j.size = s.good + s.TornBytes
	if err := j.cut(); err != nil {
		return err
	}
	j.keepAside(data)
	return j.dead
}

func (j *Journal) openFile() error {
	f, err := openRegular(File(j.dir), os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.file, j.h = f, f
	if j.opts.Wrap != nil {
		j.h = j.opts.Wrap(f)
	}
	return nil
}

// cut brings the file back to its last whole line.
func (j *Journal) cut() error {
	if j.size == j.state.good {
		return nil
	}
	if err := j.h.Truncate(j.state.good); err != nil {
		j.broken = fmt.Errorf("journal %s: cannot cut off a torn entry: %w", File(j.dir), err)
		return j.broken
	}
	j.size, j.broken = j.state.good, nil
	return nil
}

// State is what the journal says now, kept up to date by Append.
func (j *Journal) State() *State { return j.state }

// Next is the number of the next Write.
func (j *Journal) Next() int64 { return j.state.next }

func (j *Journal) header() Record {
	return Record{Header: &Header{Version: Version, Created: j.opts.Now().UTC()}}
}

// Append adds records with one write. sync forces them to the disk before it returns, which is what makes "journal
// before write" true. On an error nothing was added: a partial line is cut off again, at the latest by the next
// Append or Open.
func (j *Journal) Append(sync bool, records ...Record) error {
	if j.dead != nil {
		return j.dead
	}
	if err := j.settle(); err != nil {
		return err
	}
	if j.broken != nil {
		if err := j.cut(); err != nil {
			return err
		}
	}
	if j.state.Version == 0 {
		records = append([]Record{j.header()}, records...)
	}
	var all []byte
	if j.state.unterminated {
		all = append(all, '\n')
	}
	start := len(all)
	var ends []int
	for _, r := range records {
		text, err := encode(r)
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		all = append(all, text...)
		ends = append(ends, len(all))
	}
	n, err := j.h.Write(all)
	j.size += int64(max(n, 0))
	if err == nil && n != len(all) {
		err = io.ErrShortWrite
	}
	if err == nil && sync {
		err = j.h.Sync()
	}
	if err == nil {
		err = named(j.file)
	}
	if err != nil {
		err = fmt.Errorf("journal %s: %w", File(j.dir), wayOut(err))
		if cutErr := j.cut(); cutErr != nil {
			j.broken = cutErr
		}
		return err
	}
	j.state.unterminated = false
	for i, r := range records {
		j.state.raw = append(j.state.raw, all[start:ends[i]])
		j.state.fold(r, len(j.state.raw)-1)
		start = ends[i]
	}
	j.state.good = j.size
	return nil
}

// Close releases the lock.
func (j *Journal) Close() error {
	var err error
	if j.h != nil {
		err = j.h.Close()
	}
	return errors.Join(err, j.lock.Close())
}
