package spark

import (
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/fleet/engine"
)

// job is what job.py does, as JSON.
type job struct {
	// Files are those of view "files": number, path and rows.
	Files [][3]any `json:"files"`
	// Groups are files with equal types; each is a view, with file_path and file_row beside the columns.
	Groups []group `json:"groups"`
	// Tables are made in their order, Questions answered into Out.
	Tables    []statement `json:"tables"`
	Questions []statement `json:"questions"`
	Out       string      `json:"out"`
}

type group struct {
	View   string   `json:"view"`
	Schema string   `json:"schema"`
	Paths  []string `json:"paths"`
	age    int
}

type statement struct {
	Name string `json:"name"`
	SQL  string `json:"sql"`
	// Keep says that Spark keeps the answer.
	Keep bool `json:"keep"`
}

// newJob is the job of a script on files that descriptions are of. damaged is the question that finds files of which
// Spark could not read every row.
func newJob(files []string, descriptions []description, sound []int, s engine.Script, out string) job {
	j := job{Out: out, Files: [][3]any{}, Groups: []group{}}
	groups := map[description]int{}
	for _, no := range sound {
		d := descriptions[no]
		j.Files = append(j.Files, [3]any{no, files[no], d.rows})
		d.rows = 0
		i, ok := groups[d]
		if !ok {
			i = len(j.Groups)
			groups[d] = i
			j.Groups = append(j.Groups, group{View: fmt.Sprint("files_", i), Schema: d.schema, age: d.age})
		}
		j.Groups[i].Paths = append(j.Groups[i].Paths, "file://"+literal.Replace(files[no]))
	}
	read := []string{dialect.Nothing()} // there may be no sound file
	for _, g := range j.Groups {
		read = append(read, selected(g))
	}
	j.Tables = []statement{
		{"rows_read", strings.Join(read, "\nUNION ALL\n"), true},
		{"files_damaged", "SELECT f.file_no FROM files f " +
			"LEFT JOIN (SELECT file_no, COUNT(*) AS row_count FROM rows_read GROUP BY file_no) r ON r.file_no = f.file_no " +
			"WHERE COALESCE(r.row_count, 0) <> f.row_count", true},
		{"loaded", "SELECT * FROM rows_read r " +
			"WHERE NOT EXISTS (SELECT * FROM files_damaged d WHERE d.file_no = r.file_no)", false},
	}
	for _, t := range s.Tables {
		switch {
		case t.Elements != "":
			j.Tables = append(j.Tables, statement{t.Name, dialect.Lines(t.Elements, t.Of), false})
		case t.Numbered != "":
			j.Tables = append(j.Tables, statement{t.Name, numbered(t.Of, t.Numbered), true})
		default:
			j.Tables = append(j.Tables, statement{t.Name, t.SQL, true})
		}
	}
	j.Questions = []statement{{Name: damaged, SQL: "SELECT file_no FROM files_damaged ORDER BY file_no"}}
	for _, q := range s.Questions {
		j.Questions = append(j.Questions, statement{Name: q.Name, SQL: q.SQL})
	}
	return j
}

// damaged is the question for files of which Spark could not read every row.
const damaged = "files_damaged"

// literal makes a pattern of a name that matches that name alone.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)

// dialect is Spark's. What does not fit is null: one row must not end the run.
var dialect = engine.Dialect{
	Types: map[engine.Kind]string{
		engine.Integer: "INT", engine.BigInt: "BIGINT", engine.Double: "DOUBLE", engine.Text: "STRING", engine.Milliseconds: "BIGINT",
	},
	FieldType: "%s: %s", ListType: "ARRAY<STRUCT<%s>>",
	FieldValue: "'%s', %s", ListValue: "transform(%s, l -> named_struct(%s))",
	Cast: "TRY_CAST(%s AS %s)", Text: "COALESCE(%s, '')", Milliseconds: "unix_millis(%s)",
	Except: "EXCEPT", Explode: "explode",
}

// selected are the rows of a group. A file's path is there as a URI, in which a plus is a plus.
func selected(g group) string {
	return "SELECT f.file_no, r.file_row, " + dialect.Selected(g.age) + " FROM " + g.View +
		" r JOIN files f ON f.path = regexp_replace(url_decode(replace(r.file_path, '+', '%2B')), '^file:/+', '/')"
}

// numbered are the rows of a table that another one numbers.
func numbered(table, by string) string {
	return "SELECT r.*, n.container_no FROM " + table + " r JOIN " + by +
		" n ON n.file_no = r.file_no AND n.file_row = r.file_row"
}
