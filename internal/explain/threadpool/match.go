package threadpool

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// matchedRow is a matching row, and how well it matches.
type matchedRow struct {
	row     *Row
	verdict verdict
	because string
	literal int // plain bytes of its name that matched
}

// Match returns the rows for a thread name: a comm, or a full name from a JVM. An ambiguous name gives
// several. The order is by the evidence of the process, then by the matched length, then by the table. p may
// be nil. A row with a name that any program may use ("connection", the program's own name) needs the
// evidence of the process. A row that the process contradicts appears only if no other is left. nil: the
// table knows no such pool.
func (t *Table) Match(comm string, p *Process) []Row {
	var matchedRows []matchedRow
	best := contradicted
	for i := range t.rows {
		r := &t.rows[i]
		literal, ok := r.matches(comm, p)
		if !ok {
			continue
		}
		v, because := r.when.judge(p, r.Unnamed())
		if r.generic && v != met {
			continue
		}
		best = max(best, v)
		matchedRows = append(matchedRows, matchedRow{r, v, because, literal})
	}
	if best > contradicted {
		matchedRows = slices.DeleteFunc(matchedRows, func(f matchedRow) bool { return f.verdict == contradicted })
	}
	slices.SortStableFunc(matchedRows, func(a, b matchedRow) int {
		return cmpFound(b, a)
	})
	var rows []Row
	for _, f := range matchedRows {
		row := *f.row
		for _, other := range matchedRows {
			if other.row != f.row && cmpFound(other, f) == 0 && other.row.Library != f.row.Library {
				row.Also = append(row.Also, other.row.Library)
			}
		}
		row.Because = "its name"
		if f.because != "" {
			row.Because += ", and " + f.because
		}
		if p != nil {
			if n, told := p.CPUsItSees[row.Runtime]; told {
				row.sees = &n
			}
			row.Given = row.given(p.Cmdline)
			if p.JVM != nil { // its options are those of variables and files, too
				if row.Runtime == "jvm" {
					row.sees = p.JVM.Processors
				}
				row.Given = row.given(slices.Concat(ownWords(p.Cmdline), p.JVM.Options))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// cmpFound is less than 0 if a matches less well than b.
func cmpFound(a, b matchedRow) int {
	return cmp.Or(cmp.Compare(a.verdict, b.verdict), cmp.Compare(a.literal, b.literal))
}

func (r *Row) matches(comm string, p *Process) (literal int, ok bool) {
	for i := range r.forms {
		f := &r.forms[i]
		if f.program {
			ok = ok || p != nil && comm != "" && (comm == p.Comm || comm == commOf(p.Exe))
			continue
		}
		if n, hit := f.match(comm); hit {
			literal, ok = max(literal, n), true
		}
	}
	return literal, ok
}

// commOf returns the comm that the kernel gives a program when it starts (begin_new_exec): its file's name,
// cut.
func commOf(exe string) string {
	if exe == "" {
		return ""
	}
	name := path.Base(exe)
	return name[:min(len(name), CommBytes)]
}

// given finds a setting with its value on a command line: "-XX:ParallelGCThreads=8", "--concurrency 4".
func (r *Row) given(cmdline []string) string {
	for _, setting := range slices.Concat([]string{r.Setting}, r.OtherSettings) {
		if !strings.HasPrefix(setting, "-") && !strings.HasPrefix(setting, "+") {
			continue
		}
		s := Spelling{Option: setting}
		if _, found, ok := s.among(s.words(cmdline)); ok {
			return text.Sanitize(found, len(setting)+maxShown)
		}
	}
	return ""
}
