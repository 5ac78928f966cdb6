package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Bounds on journals kept aside. Beyond them damaged lines stay in the journal, which is then not compacted.
const (
	maxKept      = 16
	maxKeptBytes = 64 << 20
)

// keptInfix is between the journal's name and the time in the name of a journal kept aside.
const keptInfix = ".damaged-"

// Damage says that damaged lines were found in a journal, and where that journal was kept as it was found.
type Damage struct {
	Time time.Time `json:"time"`
	// Lines and Bytes are of the damaged lines, with their newlines.
	Lines int   `json:"lines"`
	Bytes int64 `json:"bytes"`
	// Kept is the file's name in the state directory.
	Kept string `json:"kept"`
	// Reported: a restore has reported it as its failure.
	Reported bool `json:"told,omitempty"`
}

type damageLine struct {
	Damage
	line int
}

// Damage lists what was kept aside, oldest first.
func (s *State) Damage() []Damage {
	var damages []Damage
	for _, d := range s.damage {
		damages = append(damages, d.Damage)
	}
	return damages
}

func (s *State) foldDamage(d Damage, lineNo int) {
	for i := range s.damage {
		if s.damage[i].Kept == d.Kept {
			s.damage[i] = damageLine{d, lineNo}
			return
		}
	}
	s.damage = append(s.damage, damageLine{d, lineNo})
	if len(s.damage) > maxKept {
		s.damage = s.damage[len(s.damage)-maxKept:]
	}
}

// linePrefix begins every line that this program writes.
const linePrefix = `{"crc":"`

// torn tells whether bytes without a newline at the end of a journal are what a writer that died leaves: the beginning
// of a line, or the whole of one, or zeros where the disk got no further. Anything else is damage.
func torn(tail []byte) bool {
	tail = bytes.TrimRight(tail, "\x00")
	if n := min(len(tail), len(linePrefix)); string(tail[:n]) != linePrefix[:n] {
		return false
	}
	if len(tail) <= len(linePrefix) {
		return true
	}
	d := json.NewDecoder(bytes.NewReader(tail))
	var message json.RawMessage
	if err := d.Decode(&message); err != nil {
		return errors.Is(err, io.ErrUnexpectedEOF)
	}
	return d.InputOffset() == int64(len(tail))
}

// KeptFiles lists the journals kept aside in a state directory, oldest first, with their paths.
func KeptFiles(stateDir string) ([]string, error) {
	all, err := filepath.Glob(escapeGlob(File(stateDir)) + keptInfix + "*")
	if err != nil {
		return nil, fmt.Errorf("state directory %s: %w", stateDir, err)
	}
	return all, nil
}

// escapeGlob takes a path literally; filepath.Glob sorts by name, and names hold times.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// NotKept tells why damaged lines could not be kept aside; they are then still in the journal. nil: there are none.
func (j *Journal) NotKept() error { return j.notKept }

// keepAside keeps a copy of a journal with damaged lines, on disk before the journal is written again without them. If
// that fails (a full disk must not keep restore from working), they stay where they are.
func (j *Journal) keepAside(data []byte) {
	if j.state.Damaged == 0 {
		return
	}
	kept, err := j.copyAside(data)
	if err != nil {
		j.notKept = fmt.Errorf("journal %s: %d damaged lines could not be kept aside: %w", File(j.dir), j.state.Damaged, err)
		return
	}
	found := Damage{Time: j.opts.Now().UTC(), Lines: j.state.Damaged, Bytes: j.state.damagedBytes, Kept: kept}
	lines := make([]int, len(j.state.raw))
	for i := range lines {
		lines[i] = i
	}
	if err := j.rewrite(lines, Record{Damage: &found}); err != nil && j.dead == nil && !j.unsettled {
		j.notKept = err
	}
}

// copyAside writes the journal as it was found to a file of its own and tells that file's name. A copy that a writer
// left which died before the journal was written again is taken for ours.
func (j *Journal) copyAside(data []byte) (string, error) {
	kept, err := KeptFiles(j.dir)
	if err != nil {
		return "", err
	}
	size := int64(len(data))
	for _, name := range kept {
		info, err := os.Lstat(name)
		if err != nil {
			return "", err
		}
		if info.Mode().IsRegular() && info.Size() == int64(len(data)) {
			if before, err := os.ReadFile(name); err == nil && bytes.Equal(before, data) {
				return filepath.Base(name), nil
			}
		}
		size += info.Size()
	}
	if len(kept) >= maxKept || size > maxKeptBytes {
		return "", fmt.Errorf("there are %d such files already, with this one %d bytes; at most %d files and %d bytes: "+
			"check %s* and remove what is no longer needed", len(kept), size, maxKept, maxKeptBytes, File(j.dir)+keptInfix)
	}
	name := File(j.dir) + keptInfix + j.opts.Now().UTC().Format("20060102-150405.000000000")
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = syncDir(j.dir)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(name))
	}
	return filepath.Base(name), nil
}
