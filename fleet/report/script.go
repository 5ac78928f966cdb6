package report

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/phases"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

//go:embed sql/*.sql
var questionFiles embed.FS

// questions are the files, which take from here what Go code says too.
var questions = template.Must(template.New("").Option("missingkey=error").Funcs(template.FuncMap{
	"outside": engine.Outside, "outsideElements": engine.OutsideElements, "asNow": asNow,
}).ParseFS(questionFiles, "sql/*.sql"))

// asNow is the condition that a row r has the remedy, the limit, its period and the CPUs that container c has now. A period that a row
// does not tell is that of the others.
func asNow(r, c string) string {
	same := fmt.Sprintf("%[1]s.remedy = %[2]s.remedy AND COALESCE(%[1]s.period_microseconds, %[2]s.period_microseconds, 0)"+
		" = COALESCE(%[2]s.period_microseconds, %[1]s.period_microseconds, 0)", r, c)
	for _, column := range []string{"own_limit_cpus", "allowed_cpus"} {
		same += fmt.Sprintf(" AND COALESCE(%s.%s, 0) = COALESCE(%s.%s, 0)", r, column, c, column)
	}
	return same
}

// endedAfter is how long before the first host's rows end is counted what runs: some rounds, in which a container's rows may
// end or be missing, and it goes on.
const endedAfter = time.Minute

// goneAfter is how long before the end of all rows a host's own rows end that is gone. Hosts write a slot of five
// minutes when it has ended, and what copies the rows may come five minutes later to one host than to another.
const goneAfter = 15 * time.Minute

// Bounds of the report's rollouts: services, containers of each, the slots of a line before the remedy and with it, and their length.
const (
	mostRollouts     = 20
	mostRolloutLines = 8
	rolloutSlots     = 48
	rolloutSlot      = 30 * time.Minute
)

// question is the text of one file, for a report at a moment, of rows until another; zero: of all.
func question(name string, now, until time.Time) string {
	if until.IsZero() {
		until = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	lately := now // what says how late it is: the report's clock, or who asks
	if until.Before(now) {
		lately = until
	}
	var sql strings.Builder
	if err := questions.ExecuteTemplate(&sql, name+".sql", map[string]any{
		"Pin":           remedy.Pin,
		"Limit":         forecast.Limit,
		"Burst":         forecast.Burst,
		"KeepLimit":     quoted(remedy.KeepingLimit()),
		"Priceable":     quoted(forecast.Priceable()),
		"SlotMS":        demand.SlotLength.Milliseconds(),
		"PhaseMS":       phases.Length.Milliseconds(),
		"LatestMS":      now.Add(clockAhead).UnixMilli(),
		"LatelyMS":      lately.Add(-goneAfter).UnixMilli(),
		"GoneAfterMS":   goneAfter.Milliseconds(),
		"EndedMS":       endedAfter.Milliseconds(),
		"MostPools":     demand.MostPools,
		"DayMS":         (24 * time.Hour).Milliseconds(),
		"DaysApplied":   view.DaysOfApplied,
		"MostRollouts":  mostRollouts,
		"MostLines":     mostRolloutLines,
		"RolloutSlots":  rolloutSlots,
		"RolloutSlotMS": rolloutSlot.Milliseconds(),
		"LastStartMS":   until.Add(-demand.SlotLength).UnixMilli(),
	}); err != nil {
		panic(err) // the files are embedded
	}
	return sql.String()
}

// quoted is a list of names in SQL.
func quoted[name ~string](names []name) string {
	var all []string
	for _, n := range names {
		all = append(all, "'"+string(n)+"'")
	}
	return strings.Join(all, ", ")
}

// script is what is asked of an engine at a moment: the tables that all questions are about, and some questions.
func script(now, until time.Time, names ...string) engine.Script {
	var s engine.Script
	answers := func(names ...string) {
		for _, name := range names {
			s.Tables = append(s.Tables, engine.Table{Name: name, SQL: question(name, now, until)})
		}
	}
	lines := func(prefix, table string) {
		for _, elements := range engine.Elements() {
			s.Tables = append(s.Tables, engine.Table{Name: prefix + elements, Elements: elements, Of: table})
		}
	}
	lines("loaded_", "loaded")
	answers("unsound", "container_names", "counted")
	s.Tables = append(s.Tables, engine.Table{Name: "fleet_rows", Of: "loaded", Numbered: "counted"})
	answers("fleet_hosts", "containers", "successors", "remedied", "untreated")
	if slices.Contains(names, "rollouts") {
		answers("rollout_lines")
	}
	lines("fleet_", "fleet_rows")
	for _, name := range names {
		s.Questions = append(s.Questions, engine.Question{Name: name, SQL: question(name, now, until)})
	}
	return s
}
