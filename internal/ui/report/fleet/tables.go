package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// most is how many lines a table has.
const most = 15

// column is a column of a table with what it shows of a row.
type column[Row any] struct {
	table.Column
	cell func(Row) string
	// label is its name beside a single cell, where its head alone does not say it; "": it does.
	label string
}

// figures is a column of figures. The columns with the largest spare go first where there is no room; 0: it never goes.
func figures[Row any](name string, spare int, cell func(Row) string) column[Row] {
	return column[Row]{Column: table.Column{Name: name, Right: true, Spare: spare}, cell: cell}
}

// words is a column of text, which may be cut to least runes; 0: never.
func words[Row any](name string, least, spare int, cell func(Row) string) column[Row] {
	return column[Row]{Column: table.Column{Name: name, Least: least, Spare: spare}, cell: cell}
}

// heads are the columns' names as a page has them.
func heads[Row any](columns []column[Row]) (found []pageHead) {
	for _, c := range columns {
		name := strings.ToLower(c.Name)
		found = append(found, pageHead{name, cmp.Or(c.label, name), c.Right})
	}
	return found
}

// cells are what the columns show of a row.
func cells[Row any](columns []column[Row], row Row) (shown []string) {
	for _, c := range columns {
		shown = append(shown, c.cell(row))
	}
	return shown
}

// newTable is a table of rows, fitted to the page.
func newTable[Row any](p *page.Page, columns []column[Row], rows []Row) *table.Table {
	var shown []table.Column
	for _, c := range columns {
		shown = append(shown, c.Column)
	}
	t := table.New(shown)
	for _, row := range rows {
		var line []table.Cell
		for _, cell := range cells(columns, row) {
			line = append(line, table.Cell{Text: cell})
		}
		t.Add(line)
	}
	t.Fit(p.Columns)
	t.Write(p, true)
	return t
}

// more says how many lines are left out.
func more(p *page.Page, left int) {
	if left > 0 {
		p.Paragraph(fmt.Sprintf("and %d more (--json has all)", left))
	}
}

// first are the first of some rows, and how many are left.
func first[Row any](rows []Row) ([]Row, int) {
	return rows[:min(most, len(rows))], max(0, len(rows)-most)
}

var serviceColumns = []column[Service]{
	words("SERVICE", 30, 0, func(s Service) string { return shownName(s.Name) }),
	figures("CONTAINERS", 3, func(s Service) string { return strconv.Itoa(s.Containers) }),
	figures("CORES", 0, func(s Service) string { return figure.Fixed(s.CoresNow, 1) }),
	figures("AFTER", 0, func(s Service) string { return figure.Fixed(s.CoresAfter, 1) }),
	figures("BETWEEN", 2, func(s Service) string { return between(s.CoresAfterLow, s.CoresAfterHigh) }),
	figures("LIMIT", 4, func(s Service) string { return figure.Fixed(s.Limit, 1) }),
	words("REMEDY", 0, 0, func(s Service) string { return s.remedyNamed() }),
	figures("RUNNABLE", 0, func(s Service) string { return figure.Fixed(s.RunnablePerCore, 2) }),
	figures("STOPPED", 0, func(s Service) string { return percent(s.StoppedShare) }),
	figures("STOP P99", 6, func(s Service) string { return milliseconds(s.StopP99) }),
	figures("REQUEST P99", 7, func(s Service) string { return milliseconds(s.RequestP99) }),
	figures("CONTENDED", 5, func(s Service) string { return percent(s.ContendedShareLow) }),
	words("SPENT BY", 8, 1, spender),
}

func spender(s Service) string {
	switch {
	case s.SpentBy != nil && *s.SpentBy == s.Name:
		return "itself"
	case s.SpentBy != nil:
		return shownName(*s.SpentBy)
	case s.StoppedBy != nil:
		return "a " + *s.StoppedBy + "'s"
	}
	return figure.Missing
}

// byRemedyTitle and pricesTitle stand above the tables of remedies.
const (
	byRemedyTitle = "By remedy: the one that needs fewest cores"
	pricesTitle   = "Cores that services need at the same latency, with each remedy"
)

var byRemedyColumns = []column[ByRemedy]{
	words("REMEDY", 0, 0, func(r ByRemedy) string { return named(r.Remedy, r.PeriodMS) }),
	words("KEEPS", 0, 0, func(r ByRemedy) string {
		if r.Priced {
			return "p99"
		}
		return "stops"
	}),
	figures("SERVICES", 4, func(r ByRemedy) string { return strconv.Itoa(r.Services) }),
	figures("CONTAINERS", 3, func(r ByRemedy) string { return strconv.Itoa(r.Containers) }),
	figures("CORES", 0, func(r ByRemedy) string { return figure.Fixed(&r.CoresNow, 1) }),
	figures("AFTER", 0, func(r ByRemedy) string { return figure.Fixed(&r.CoresAfter, 1) }),
	figures("SAVED", 0, func(r ByRemedy) string { return figure.Fixed(&r.Saved, 1) }),
	figures("BETWEEN", 0, func(r ByRemedy) string { return between(&r.SavedLow, &r.SavedHigh) }),
	figures("ROUNDING", 1, func(r ByRemedy) string { return figure.Fixed(r.Rounding, 1) }),
	words("ASKS FOR", 0, 2, func(r ByRemedy) string { return r.Asks }),
}

// remedyColumns and servicesColumns are the columns of a document, with what is saved in a month if that is known.
func remedyColumns(d Document) []column[ByRemedy] {
	return withMoney(d, byRemedyColumns, func(r ByRemedy) *PerMonth { return r.PerMonth })
}

func servicesColumns(d Document) []column[Service] {
	return withMoney(d, serviceColumns, func(s Service) *PerMonth { return s.PerMonth })
}

func withMoney[Row any](d Document, columns []column[Row], of func(Row) *PerMonth) []column[Row] {
	if d.Ledger.PerMonth == nil {
		return columns
	}
	return append(slices.Clip(columns), figures("SAVED A MONTH", 0, func(r Row) string {
		m := of(r)
		if m == nil {
			return figure.Missing
		}
		return fmt.Sprintf("%s, %s-%s", money(m.Saved), money(m.SavedLow), money(m.SavedHigh))
	}))
}

// money is an amount: small ones with their hundredths.
func money(v float64) string {
	if math.Abs(v) < 1000 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// askedFor is what a remedy asks for, for people.
var askedFor = map[string]string{
	AsksLimit:   "another limit of the workload",
	AsksNode:    "a setting on the node, which unthrottle keeps",
	AsksSetting: "the sizes of the service's pools",
	AsksCode:    "a change of the service's code",
	AsksShards:  "half as many containers, so that each that is lost takes twice as much with it",
}

// asks explains what the remedies ask for.
func asks(remedies []ByRemedy) string {
	var parts []string
	for _, what := range []string{AsksLimit, AsksNode, AsksSetting, AsksCode, AsksShards} {
		if slices.ContainsFunc(remedies, func(r ByRemedy) bool { return r.Asks == what }) {
			parts = append(parts, what+": "+askedFor[what])
		}
	}
	return strings.Join(parts, "; ")
}

var priceColumns = slices.Concat([]column[Service]{
	words("SERVICE", 24, 0, func(s Service) string { return shownName(s.Name) }),
	words("LATENCY", 0, 5, judged),
	figures("SLOWER AT", 0, func(s Service) string { return percent(s.KneeShare) }),
	figures("CORES", 0, func(s Service) string { return figure.Fixed(&s.Prices[0].CoresNow, 1) }),
},
	columnsOfPrices(),
	[]column[Service]{words("REMEDY", 0, 0, func(s Service) string { return s.remedyNamed() })},
)

// columnsOfPrices are what remains with each remedy.
func columnsOfPrices() (columns []column[Service]) {
	for _, r := range Remedies {
		columns = append(columns, figures(strings.ToUpper(r.Remedy), 0, func(s Service) string {
			for _, p := range s.Prices {
				if p.Remedy == r.Remedy {
					return figure.Fixed(&p.CoresAfter, 1)
				}
			}
			return figure.Missing
		}))
	}
	return columns
}

// judged is which latency stays.
func judged(s Service) string {
	if s.JudgedOf == nil || s.JudgedQuantile == nil {
		return figure.Missing
	}
	of := shownName(*s.JudgedOf)
	if *s.JudgedOf == "" {
		of = "pools"
	}
	return fmt.Sprintf("%s of %s, %s", objective.Percentile(*s.JudgedQuantile), of, milliseconds(s.JudgedMS))
}

// objectiveTitle stands above the table of objectives.
const objectiveTitle = "Cores that services need for their own objectives, by their limits alone"

var objectiveColumns = []column[Service]{
	words("SERVICE", 24, 0, func(s Service) string { return shownName(s.Name) }),
	words("OBJECTIVE", 0, 0, func(s Service) string { return s.Objective.bound().String() }),
	figures("CORES", 0, func(s Service) string { return figure.Fixed(&s.Prices[0].CoresNow, 1) }),
	figures("NEEDS", 0, func(s Service) string { return figure.Fixed(&s.Objective.Cores, 1) }),
	figures("BETWEEN", 1, func(s Service) string { return between(&s.Objective.CoresLow, s.Objective.CoresHigh) }),
	figures("TOO MANY", 0, func(s Service) string { return fmt.Sprintf("%.0f %%", 100*s.Objective.Slack) }),
}

// bound is the objective as its owner wrote it.
func (o *Objective) bound() objective.Objective {
	return objective.Objective{Quantile: o.Quantile, Bound: time.Duration(math.Round(1000*o.MS)) * time.Microsecond}
}

// slack is how far a service is from its objective, in cores: too many, or too few.
func slack(s Service) *float64 {
	if s.Objective == nil || len(s.Prices) == 0 {
		return nil
	}
	return new(math.Abs(s.Objective.Cores - s.Prices[0].CoresNow))
}

// savedAtP99 is what a service with prices needs less than it has.
func savedAtP99(s Service) *float64 {
	if len(s.Prices) == 0 {
		return nil
	}
	return saved(s)
}

// shardsTitle and shardsAssume stand around the table of shards.
const (
	shardsTitle  = "The same as half and as twice as many containers"
	shardsAssume = "Where requests come to containers independently of each other: wide moments of two seldom meet. " +
		"What each container costs by itself (memory, caches, a collector) is not in it."
)

var shardColumns = slices.Concat([]column[Service]{
	words("SERVICE", 24, 0, func(s Service) string { return shownName(s.Name) }),
	figures("CONTAINERS", 0, func(s Service) string { return strconv.Itoa(s.Containers) }),
	figures("AFTER", 0, func(s Service) string { return figure.Fixed(s.CoresAfter, 1) }),
},
	columnsOfShards("HALF", func(s Service) *Shards { return s.Half }),
	columnsOfShards("TWICE", func(s Service) *Shards { return s.Double }),
)

// columnsOfShards are the columns of another number of containers.
func columnsOfShards(name string, shards func(Service) *Shards) []column[Service] {
	cell := func(shown func(*Shards) string) func(Service) string {
		return func(s Service) string {
			if x := shards(s); x != nil {
				return shown(x)
			}
			return figure.Missing
		}
	}
	return []column[Service]{
		figures(name, 0, cell(func(x *Shards) string { return strconv.Itoa(x.Containers) })),
		figures("LIMIT", 2, cell(func(x *Shards) string { return figure.Fixed(&x.Limit, 1) })),
		figures("CORES", 0, cell(func(x *Shards) string { return figure.Fixed(&x.Cores, 1) })),
		figures("BETWEEN", 1, cell(func(x *Shards) string { return between(&x.CoresLow, &x.CoresHigh) })),
	}
}

// Titles of the tables of services whose hosts or shards differ, and what they show.
const (
	spreadTitle   = "Unlike on their hosts, with the same limit"
	shardsUnlike  = "Unlike from shard to shard, by more than on their hosts"
	spreadAssumes = "Shares, and the p99 of requests, where they are least, in the middle, and where they are most, which is named: of " +
		"those that were observed for at least half as long as another."
)

var (
	hostSpreadColumns = spreadColumns("HOSTS", func(s Service) (int, *Spread) { return s.OverHosts.Hosts, s.OverHosts })
	shardColumnsOver  = spreadColumns("SHARDS", func(s Service) (int, *Spread) { return s.OverShards.Shards, s.OverShards })
)

// spreadColumns are those of a service over so many of its parts.
func spreadColumns(parts string, over func(Service) (int, *Spread)) []column[Service] {
	columns := []column[Service]{
		words("SERVICE", 24, 0, func(s Service) string { return shownName(s.Name) }),
		figures(parts, 3, func(s Service) string {
			n, _ := over(s)
			return strconv.Itoa(n)
		}),
	}
	for i, of := range (*Spread)(nil).figures() {
		its := func(s Service) *Range {
			_, spread := over(s)
			return spread.figures()[i].Range
		}
		columns = append(columns, figures(strings.ToUpper(of.name), of.spare, func(s Service) string { return of.shown(its(s)) }),
			column[Service]{table.Column{Name: of.on, Least: 8, Spare: of.spareOn}, func(s Service) string { return its(s).on() },
				of.name + " most on"})
	}
	return columns
}

// spreadFigure is a figure of which there is a range, with its columns' spare.
type spreadFigure struct {
	name, on       string
	cell           func(*float64) string
	spare, spareOn int
	*Range
}

// figures are the figures of which there are ranges, in their order.
func (s *Spread) figures() []spreadFigure {
	if s == nil {
		s = &Spread{}
	}
	return []spreadFigure{{"stopped", "STOPPED ON", percent, 0, 1, s.Stopped},
		{"contended", "CONTENDED ON", percent, 0, 2, s.Contended},
		{"request p99", "SLOWEST ON", milliseconds, 4, 5, s.RequestP99}}
}

func (f *spreadFigure) shown(r *Range) string {
	if r == nil {
		return figure.Missing
	}
	return fmt.Sprintf("%s, %s, %s", f.cell(&r.Least), f.cell(&r.Median), f.cell(&r.Most))
}

func (r *Range) on() string {
	if r == nil || r.Most == 0 {
		return figure.Missing
	}
	return shownName(r.MostOn)
}

// hardly is by how much shares of hosts may differ that are called alike.
const hardly = 0.01

// unlike is by how much the hosts of a service differ in one of the shares; nil: that is not known, or hardly. What
// differs in p99 alone is not told of: of some twenty requests it differs anyway.
func unlike(s Service) *float64 {
	if s.OverHosts == nil {
		return nil
	}
	return beyond(s.OverHosts.differ(), hardly)
}

// unlikeShards is the same of shards; nil too where its hosts differ as much.
func unlikeShards(s Service) *float64 {
	if s.OverShards == nil {
		return nil
	}
	least := hardly
	if s.OverHosts != nil {
		least += s.OverHosts.differ()
	}
	return beyond(s.OverShards.differ(), least)
}

func (s *Spread) differ() (differ float64) {
	for _, r := range []*Range{s.Stopped, s.Contended} {
		if r != nil {
			differ = max(differ, r.Most-r.Least)
		}
	}
	return differ
}

func beyond(v, least float64) *float64 {
	if v < least {
		return nil
	}
	return &v
}

// unlikeTable is a table of services whose hosts or shards differ most.
type unlikeTable struct {
	title   string
	columns []column[Service]
	rows    []Service
	left    int
}

// unlikeTables are those that have rows.
func unlikeTables(services []Service) (tables []unlikeTable) {
	for _, t := range []struct {
		unlikeTable
		by func(Service) *float64
	}{{unlikeTable{title: spreadTitle, columns: hostSpreadColumns}, unlike},
		{unlikeTable{title: shardsUnlike, columns: shardColumnsOver}, unlikeShards}} {
		if t.rows, t.left = ranked(services, t.by); len(t.rows) > 0 {
			tables = append(tables, t.unlikeTable)
		}
	}
	return tables
}

const appliedTitle = "What remedies did"

var appliedColumns = []column[Applied]{
	words("REMEDY", 0, 0, func(a Applied) string { return text.Shown(a.Remedy) }),
	figures("CONTAINERS", 0, func(a Applied) string { return strconv.Itoa(a.Containers) }),
	figures("DO LESS", 5, func(a Applied) string { return strconv.Itoa(a.DoLess) }),
	figures("STOPPED BEFORE", 0, func(a Applied) string { return percent(a.StoppedBefore) }),
	{table.Column{Name: "AFTER", Right: true}, func(a Applied) string { return percent(a.StoppedAfter) }, "stopped after"},
	figures("FORECAST", 1, func(a Applied) string { return percent(a.StoppedForecast) }),
	figures("CORES BEFORE", 0, func(a Applied) string { return figure.Fixed(a.CoresBefore, 1) }),
	{table.Column{Name: "AFTER", Right: true}, func(a Applied) string { return figure.Fixed(a.CoresAfter, 1) },
		"cores after"},
	figures("P99 BEFORE", 3, func(a Applied) string { return milliseconds(a.RequestP99Before) }),
	figures("P99 AFTER", 4, func(a Applied) string { return milliseconds(a.RequestP99After) }),
	figures("PROMISED", 0, func(a Applied) string { return figure.Fixed(a.SavedPromised, 1) }),
	figures("BETWEEN", 2, func(a Applied) string { return between(a.SavedLow, a.SavedHigh) }),
	figures("CAME", 0, func(a Applied) string { return figure.Fixed(a.Came, 1) }),
	figures("WORSE", 0, func(a Applied) string {
		if a.Compared == 0 {
			return figure.Missing
		}
		return fmt.Sprintf("%d of %d", a.Worse, a.Compared)
	}),
}

const (
	appliedAssumes = "PROMISED: cores that recordings before said would come back; CAME: those that did. WORSE: containers with a longer p99 " +
		"than before, or stopped for more than was foretold, of those of which it is known."
	appliedDaysTitle = "What remedies did, by the day since they came into force"
)

// shownDay is a day with a remedy.
type shownDay struct {
	remedy string
	AppliedDay
}

func appliedDays(all []Applied) (days []shownDay) {
	for _, a := range all {
		for _, d := range a.Days {
			days = append(days, shownDay{a.Remedy, d})
		}
	}
	return days
}

var appliedDayColumns = []column[shownDay]{
	words("REMEDY", 0, 0, func(d shownDay) string { return text.Shown(d.remedy) }),
	figures("DAY", 0, func(d shownDay) string {
		if d.Day == DaysOfApplied {
			return "later"
		}
		return strconv.Itoa(d.Day + 1)
	}),
	figures("CONTAINERS", 0, func(d shownDay) string { return strconv.Itoa(d.Containers) }),
	figures("STOPPED", 0, func(d shownDay) string { return percent(&d.StoppedShare) }),
	figures("CORES", 0, func(d shownDay) string { return figure.Fixed(d.Cores, 1) }),
	figures("REQUEST P99", 0, func(d shownDay) string { return milliseconds(d.RequestP99) }),
}

var moveColumns = []column[Move]{
	figures("ROUND", 0, func(m Move) string { return strconv.Itoa(m.Round) }),
	words("SERVICE", 12, 0, func(m Move) string { return shownName(m.Service) }),
	words("POD", 8, 1, func(m Move) string { return shownName(m.Pod) }),
	words("FROM", 6, 0, func(m Move) string { return shownName(m.From) }),
	words("TO", 6, 0, func(m Move) string { return shownName(m.To) }),
	words("CPUS", 0, 2, func(m Move) string { return known(m.CPUs) }),
}

var repairColumns = []column[Repair]{
	words("NODE", 6, 0, func(r Repair) string { return shownName(r.Node) }),
	words("POD", 8, 1, func(r Repair) string { return shownName(r.Pod) }),
	words("CONTAINER", 6, 0, func(r Repair) string { return shownName(r.Container) }),
	words("FROM", 0, 0, func(r Repair) string { return r.From }),
	words("TO", 0, 0, func(r Repair) string { return r.To }),
}

// ranking is the services in one order, by a figure that is above zero.
type ranking struct {
	title string
	by    func(Service) *float64
	rows  []Service
	left  int // beyond most
}

// rankings are the orders that people look for, without those that have no service.
func rankings(services []Service) (found []ranking) {
	for _, r := range []ranking{
		{title: "Services that save most", by: saved},
		{
			title: "Most runnable threads per reserved core, while any is runnable",
			by:    func(s Service) *float64 { return s.RunnablePerCore },
		},
		{title: "Stopped most", by: func(s Service) *float64 { return s.StoppedShare }},
		{
			title: "Waited most for CPUs that others held, or more threads of their own than CPUs",
			by:    func(s Service) *float64 { return s.ContendedShareLow },
		},
	} {
		if r.rows, r.left = ranked(services, r.by); len(r.rows) > 0 {
			found = append(found, r)
		}
	}
	return found
}

// ranked are the services with the largest figures, and how many more have one above zero.
func ranked(services []Service, by func(Service) *float64) (rows []Service, left int) {
	for _, s := range services {
		if v := by(s); v != nil && *v > 0 {
			rows = append(rows, s)
		}
	}
	slices.SortStableFunc(rows, func(a, b Service) int {
		return cmp.Or(cmp.Compare(*by(b), *by(a)), cmp.Compare(a.Name, b.Name))
	})
	return first(rows)
}

// saved is what a service needs less than it has; nil: not known.
func saved(s Service) *float64 { return less(s.CoresNow, s.CoresAfter) }

// savedByHalf is what it needs less as half as many containers.
func savedByHalf(s Service) *float64 {
	if s.Half == nil {
		return nil
	}
	return less(s.CoresAfter, &s.Half.Cores)
}

func less(have, need *float64) *float64 {
	if have == nil || need == nil {
		return nil
	}
	return new(*have - *need)
}

// known is a word, if there is one.
func known(word *string) string {
	if word == nil {
		return figure.Missing
	}
	return *word
}

// shownName is a stranger's name, or that there is none.
func shownName(name string) string {
	if name == "" {
		return "(no name)"
	}
	return text.Shown(name)
}

func between(low, high *float64) string {
	if low == nil || high == nil {
		return figure.Missing
	}
	return fmt.Sprintf("%.1f-%.1f", *low, *high)
}

func milliseconds(ms *float64) string {
	if ms == nil {
		return figure.Missing
	}
	return text.Duration(time.Duration(*ms * float64(time.Millisecond)))
}

// percent is a share of the time.
func percent(share *float64) string {
	switch {
	case share == nil:
		return figure.Missing
	case *share > 0 && *share < 0.0005:
		return "<0.1 %"
	}
	return strconv.FormatFloat(100**share, 'f', 1, 64) + " %"
}
