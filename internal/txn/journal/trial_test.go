package journal

import (
	"os"
	"strings"
	"testing"
	"time"
)

// trial begins and commits a transaction on trial, of its own or of another one.
func trial(id, of, path string) []Record {
	b := begin(id, path)
	b.Begin.Trial = &Trial{Of: of, Process: Process{PID: 7, Started: 99, Namespace: 5}, Until: time.Unix(100, 0).UTC()}
	return []Record{b, {Commit: &Commit{Txn: id}}}
}

// A transaction is on trial from its commit until the trial ends, with the ones
// that share its trial, and no other.
func TestTrial(t *testing.T) {
	dir := t.TempDir() + "/s"
	j := open(t, dir, Options{})
	records := trial("1", "1", "/a")
	add(t, j, records[0])
	if got := j.State().byID["1"].Phase; got != Applying {
		t.Errorf("begun: %s", got)
	}
	add(t, j, records[1])
	add(t, j, trial("2", "1", "/b")...)
	add(t, j, trial("3", "3", "/c")...)
	add(t, j, trial("4", "1", "/d")...)
	add(t, j, closed("4"))
	if on := j.State().OnTrial("1"); len(on) != 2 || !on[0].Held() || on[0].Trial.PID != 7 {
		t.Errorf("on trial %v", on)
	}
	add(t, j, Record{Kept: &Kept{Trial: "1"}}, Record{Kept: &Kept{Trial: "none"}})
	j.Close()
	s, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]Phase{"1": InForce, "2": InForce, "3": OnTrial, "4": Closed} {
		if got := s.byID[id]; got.Phase != want {
			t.Errorf("%s: %s, want %s", id, got.Phase, want)
		}
	}
}

// Compaction keeps the end of a trial with its transaction.
func TestCompactionKeepsTrials(t *testing.T) {
	dir := t.TempDir() + "/s"
	j := open(t, dir, Options{Keep: 1})
	add(t, j, append(trial("kept", "kept", "/a"), Record{Kept: &Kept{Trial: "kept"}})...)
	add(t, j, trial("on", "on", "/b")...)
	bulk := strings.Repeat("x", 1000)
	for i := range 300 {
		id := "t" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		add(t, j, begin(id, "/"+bulk), closed(id))
	}
	if err := j.Compact(); err != nil {
		t.Fatal(err)
	}
	j.Close()
	if data, _ := os.ReadFile(File(dir)); len(data) > 10_000 {
		t.Errorf("%d bytes after compaction", len(data))
	}
	s, err := Load(dir)
	if err != nil || s.byID["kept"].Phase != InForce || s.byID["on"].Phase != OnTrial {
		t.Errorf("%v, %v, %v", err, s.byID["kept"], s.byID["on"])
	}
}

// A program that does not know trials reads such a journal: what is on trial is
// in force there, and the end of a trial is a line that it keeps.
func TestTrialsForOlderPrograms(t *testing.T) {
	dir := t.TempDir() + "/s"
	j := open(t, dir, Options{})
	add(t, j, append(trial("1", "1", "/a"), Record{Kept: &Kept{Trial: "1"}})...)
	j.Close()
	data, err := os.ReadFile(File(dir))
	if err != nil {
		t.Fatal(err)
	}
	// The keys as such a program would see them: unknown ones.
	var older []byte
	for line := range strings.Lines(string(data)) {
		rec := line[strings.Index(line, `"rec":`)+len(`"rec":`) : len(line)-2]
		rec = strings.Replace(strings.Replace(rec, `"kept":`, `"unheard":`, 1), `"trial":{`, `"unheard":{`, 1)
		older = append(older, `{"crc":"`+checksum([]byte(rec))+`","rec":`+rec+"}\n"...)
	}
	s := Parse(older)
	if s.Version != Version || s.Damaged != 0 || s.Unknown != 1 || len(s.always) != 2 || s.byID["1"].Phase != InForce {
		t.Errorf("%v, %d damaged, %d unknown, %v", s, s.Damaged, s.Unknown, s.byID["1"])
	}
}
