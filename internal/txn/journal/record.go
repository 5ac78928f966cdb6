package journal

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// Version is the format that this program writes.
const Version = 1

// Path is a cgroup path or another stranger's name: raw bytes in memory, escaped without loss in JSON.
type Path string

// MarshalText escapes what JSON cannot carry.
func (p Path) MarshalText() ([]byte, error) { return []byte(text.EscapePath(string(p))), nil }

// UnmarshalText is the inverse of MarshalText.
func (p *Path) UnmarshalText(escaped []byte) error {
	*p = Path(text.UnescapePath(string(escaped)))
	return nil
}

// Record is one line of the journal; exactly one field is set. One with no field set was written by a later version.
type Record struct {
	Header  *Header  `json:"header,omitempty"`
	Begin   *Begin   `json:"begin,omitempty"`
	Write   *Write   `json:"write,omitempty"`
	Done    *Done    `json:"done,omitempty"`
	Commit  *Commit  `json:"commit,omitempty"`
	Release *Release `json:"release,omitempty"`
	Close   *Close   `json:"close,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
	Damage  *Damage  `json:"damage,omitempty"`
	Kept    *Kept    `json:"kept,omitempty"`
}

// Header opens every journal.
type Header struct {
	// Version is the format; a journal with a later one is read as far as it is understood and never written.
	Version int       `json:"version"`
	Created time.Time `json:"created"`
}

// Setting names what is changed: Key plus which cgroup it is (ID) and in which life of the machine (Boot).
type Setting struct {
	Kind       change.Kind       `json:"kind"`
	Controller cgroup.Controller `json:"controller,omitempty"`
	Path       Path              `json:"path"`
	File       string            `json:"file,omitempty"`
	Unit       Path              `json:"unit,omitempty"`
	// ID is the cgroup's inode: 0 for a cgroup that did not exist when the transaction began.
	ID   uint64 `json:"cgroup_id,omitempty"`
	Boot string `json:"boot"`
}

// Key is the setting without the life it had.
func (s Setting) Key() change.Key {
	return change.Key{Kind: s.Kind, Controller: s.Controller, Path: string(s.Path), File: s.File, Unit: string(s.Unit)}
}

// Hold is what a transaction does to one setting, and the value before our first hold.
type Hold struct {
	Setting
	Op change.Op `json:"op"`
	To Path      `json:"to"`
	// Original is the value to restore when no transaction holds the setting.
	Original Path `json:"original"`
	// Base is what an empty original list stood for.
	Base string `json:"base,omitempty"`
	// Rebase: the value found was not ours, so that earlier holders of the setting have lost it.
	Rebase            bool              `json:"rebase,omitempty"`
	MembersController cgroup.Controller `json:"members_controller,omitempty"`
	MembersPath       Path              `json:"members_path,omitempty"`
	Why               string            `json:"why,omitempty"`
}

// Begin opens a transaction: what it is for, and every setting that it will hold.
type Begin struct {
	Txn        string            `json:"txn"`
	Time       time.Time         `json:"time"`
	By         string            `json:"by,omitempty"`
	PID        int               `json:"pid,omitempty"`
	Boot       string            `json:"boot"`
	Target     Path              `json:"target"`
	Name       string            `json:"name,omitempty"`
	Remedy     string            `json:"remedy,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	// Expected is the caller's forecast, as JSON.
	Expected json.RawMessage `json:"expected,omitempty"`
	// Trial, if set, says that the transaction is on trial from the commit until a Kept ends the trial. A program that
	// does not know trials reads the transaction as one in force.
	Trial *Trial `json:"trial,omitempty"`
	Holds []Hold `json:"holds"`
}

// Write says that a setting is about to be written: it is on disk before the setting is touched.
type Write struct {
	N    int64     `json:"n"`
	Txn  string    `json:"txn"`
	Time time.Time `json:"time"`
	By   string    `json:"by,omitempty"`
	Setting
	Before Path `json:"before"`
	Want   Path `json:"want"`
	// Beside are files that the write may change for a moment too (cgroup.Besides). Where no Done follows, they may still
	// have another value than here.
	Beside []Beside `json:"beside,omitempty"`
}

// Beside is a file of the cgroup of a write that must keep its value.
type Beside struct {
	Controller cgroup.Controller `json:"controller"`
	File       string            `json:"file"`
	Value      Path              `json:"value"`
	// Becomes is the value that it has meanwhile; "": it is not known.
	Becomes Path `json:"becomes,omitempty"`
}

// Done is the value as read back after write N.
type Done struct {
	N     int64  `json:"n"`
	Value Path   `json:"value"`
	ID    uint64 `json:"cgroup_id,omitempty"`
	Error string `json:"error,omitempty"`
}

// Commit says that everything the transaction wanted is in place.
type Commit struct {
	Txn  string    `json:"txn"`
	Time time.Time `json:"time"`
	// Also are transactions that are complete at the same moment: exclusive sets that change places.
	Also []string `json:"also,omitempty"`
	// Replaced are transactions whose place these take: they end at this moment, and are never in force beside them.
	Replaced []string `json:"replaced,omitempty"`
}

// Release begins the rollback of transactions: their holds no longer count.
type Release struct {
	Txns   []string  `json:"txns"`
	Reason string    `json:"reason"`
	Time   time.Time `json:"time"`
	By     string    `json:"by,omitempty"`
}

// Close ends a transaction: all that could be put back is.
type Close struct {
	Txn     string    `json:"txn"`
	Reason  string    `json:"reason"`
	Time    time.Time `json:"time"`
	By      string    `json:"by,omitempty"`
	Skipped []Skipped `json:"skipped,omitempty"`
}

// Skipped is a setting that was not put back, and why.
type Skipped struct {
	Path Path   `json:"path"`
	File string `json:"file,omitempty"`
	Why  string `json:"why"`
}

// Outcome is what came of a transaction.
type Outcome struct {
	Txn  string    `json:"txn"`
	Time time.Time `json:"time"`
	// Outcome is the caller's verdict and figures, as JSON.
	Outcome json.RawMessage `json:"outcome"`
}

// line is how a record stands on disk. The checksum is over the record's bytes as they stand there, so that fields of
// later versions count and survive.
type line struct {
	Sum string          `json:"crc"`
	Rec json.RawMessage `json:"rec"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(rec []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(rec, castagnoli)) }

// encode makes the line of a record, with its newline.
func encode(r Record) ([]byte, error) {
	rec, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	// Not by json.Marshal: it would compact and escape rec again, and the checksum is over its bytes.
	out := make([]byte, 0, len(rec)+32)
	out = append(out, `{"crc":"`...)
	out = append(out, checksum(rec)...)
	out = append(out, `","rec":`...)
	out = append(out, rec...)
	out = append(out, "}\n"...)
	if len(out) > maxLineBytes {
		return nil, fmt.Errorf("a journal entry of %d bytes is longer than %d", len(out), maxLineBytes)
	}
	return out, nil
}

// decode reads one line without its newline; an error means that the line is damaged.
func decode(text []byte) (Record, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return Record{}, err
	}
	if l.Sum != checksum(l.Rec) {
		return Record{}, fmt.Errorf("checksum %.20q does not fit", l.Sum)
	}
	var r Record
	if err := json.Unmarshal(l.Rec, &r); err != nil {
		// Intact, but of a shape this version does not know.
		return Record{}, nil
	}
	return r, nil
}
