package remedy

import (
	"slices"

	"github.com/unthrottle/unthrottle/internal/kernel/features"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/placement"
)

// Remedy is one remedy as a value. Commands, the agent's rules, `check` and forecasts derive their lists from the table
// of them. How it is undone stands in no row: a transaction undoes each setting that it wrote, whatever the remedy.
type Remedy struct {
	Kind Kind
	// Settings are its settings, by the names of their flags.
	Settings []Setting
	// Classes are the classes of CPUs that it gives a container; none: it gives no CPUs.
	Classes []placement.Class
	// Effects are its rows in a forecast, simulated and priced; none: it is not forecast.
	Effects []*forecast.Effect
	// MayGrantMore: it can grant more CPU than the limit, which a user has to ask for.
	MayGrantMore bool
	// LargerLimit: it brings more work where the whole limit is used.
	LargerLimit bool
	// ShowsDemand: a container with it in force shows what it needs, as it neither bounds its width nor lifts its quota.
	ShowsDemand bool
	// Merit is why it is chosen where nothing was forecast; nil: it is not.
	Merit *Merit
	// ForOthers: it is applied for the sake of the containers beside it. It needs no finding, and where they get worse
	// it is undone also where the user asked for it by name.
	ForOthers bool

	// here says of a host whose cpu controller is writable whether the remedy can be applied; nil: it can.
	here func(features.Report) (can bool, why string)
	// request asks a plan for a row of its Effects. The text says why no plan can do that row.
	request func(row forecast.Remedy, r *Request) (refused string)
	// row is the row of the first of its Effects that is forecast where it is asked for with settings; false: those settings
	// have none. Nil: it has the rows of its Effects.
	row func(r Request, c forecast.Container) (forecast.Remedy, bool)
	// plan adds what it changes to a plan in the making. The error is a *Refused where it cannot or must not be applied.
	plan func(*planner) error
	// parameters are those that its transactions have in the journal, needs those without which one cannot be read.
	parameters, needs []string
}

// Merit is what speaks for a remedy where only counters are known.
type Merit struct {
	// Rank orders the remedies, from 0.
	Rank int
	// Why is the reason to try it.
	Why string
	// Spare: it needs unused quota. Judged: it needs the user's own latency as its judge, or to be asked for.
	Spare, Judged bool
}

// table has every remedy, in the order in which people read them.
var table = []Remedy{pin, narrow, burst, period, capSibling, weight, raise, secondary}

// All returns the remedies, in the order in which people read them.
func All() []Remedy { return slices.Clone(table) }

// Find returns the remedy of a kind; false: there is none.
func Find(kind Kind) (Remedy, bool) {
	i := slices.IndexFunc(table, func(r Remedy) bool { return r.Kind == kind })
	if i < 0 {
		return Remedy{}, false
	}
	return table[i], true
}

// Kinds are all of them, in the order in which people read them.
func Kinds() []Kind { return kindsOf(func(Remedy) bool { return true }) }

// GrantingMore are the remedies that can grant more CPU than the limit.
func GrantingMore() []Kind { return kindsOf(func(r Remedy) bool { return r.MayGrantMore }) }

// KeepingLimit are the remedies with which a container can use no more than the limit that it had. A remedy for the sake of others is
// none of them: with it a container uses whatever they leave idle.
func KeepingLimit() []Kind {
	return kindsOf(func(r Remedy) bool { return !r.MayGrantMore && !r.ForOthers })
}

func kindsOf(which func(Remedy) bool) []Kind {
	var kinds []Kind
	for _, r := range table {
		if which(r) {
			kinds = append(kinds, r.Kind)
		}
	}
	return kinds
}

// Effects are the rows of a forecast, in the order of the table.
func Effects() []*forecast.Effect {
	var effects []*forecast.Effect
	for _, r := range table {
		effects = append(effects, r.Effects...)
	}
	return effects
}

// EffectsAsked are Effects where a remedy is asked for by name. That one has a single row, with the settings asked for.
func EffectsAsked(r Request) []*forecast.Effect {
	var effects []*forecast.Effect
	for _, remedy := range table {
		if remedy.Kind != r.Kind || remedy.row == nil {
			effects = append(effects, remedy.Effects...)
			continue
		}
		asked := *remedy.Effects[0]
		asked.Parts = nil // it is shown also where it is no better than its parts
		asked.Rows = func(c forecast.Container) []forecast.Remedy {
			if row, ok := remedy.row(r, c); ok {
				return []forecast.Remedy{row}
			}
			return nil
		}
		effects = append(append(effects, &asked), remedy.Effects[1:]...)
	}
	return effects
}

// AskedRow returns the name of the row of EffectsAsked that is the remedy asked for; "": there is none.
func AskedRow(kind Kind) string {
	if remedy, ok := Find(kind); ok && remedy.row != nil {
		return remedy.Effects[0].Name
	}
	return ""
}

// OfRow returns the remedy that a row of a forecast is of; false: of none, such as leaving it.
func OfRow(row forecast.Remedy) (Remedy, bool) {
	for _, r := range table {
		if slices.ContainsFunc(r.Effects, func(e *forecast.Effect) bool { return e.Name == row.Name }) {
			return r, true
		}
	}
	return Remedy{}, false
}

// RequestOf is how a row of a forecast is asked of a plan, with the settings of the wish. The text says why no plan can
// do it.
func RequestOf(row forecast.Remedy, settings Request) (r Request, refused string) {
	r = settings
	remedy, ok := OfRow(row)
	if !ok {
		if row.InCode() {
			return r, "it is a change of the program's code"
		}
		return r, "it is a setting of the service"
	}
	r.Kind = remedy.Kind
	if remedy.request != nil {
		refused = remedy.request(row, &r)
	}
	return r, refused
}

// Has reports whether a setting belongs to the remedy.
func (r Remedy) Has(flag string) bool {
	return slices.ContainsFunc(r.Settings, func(s Setting) bool { return s.Flag == flag })
}
