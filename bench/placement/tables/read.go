package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// reader reads one peer's tables.
type reader struct {
	prefix   string
	machines map[string][][5]int
	vars     map[string]cpuset.CPUSet // of the function that is read
}

// savedMachine is the one that nri-plugins' tables are about, as saved here.
const savedMachine = "scattered-80"

// readMachines reads variables that hold a CPUTopology.
func (r *reader) readMachines(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		details, ok := field(v.Values[0], "CPUDetails").(*ast.CompositeLit)
		if !ok {
			return true
		}
		var rows [][5]int
		for _, e := range details.Elts {
			pair := e.(*ast.KeyValueExpr)
			at := func(name string) int { return number(field(pair.Value, name)) }
			rows = append(rows, [5]int{number(pair.Key), at("CoreID"), at("SocketID"), at("NUMANodeID"), at("UncoreCacheID")})
		}
		slices.SortFunc(rows, func(a, b [5]int) int { return a[0] - b[0] })
		r.machines[r.prefix+v.Names[0].Name] = rows
		return false
	})
}

// readCases reads the entries of tables of any form, function by function. It skips those whose sets do not
// follow from the text alone.
func (r *reader) readCases(f *ast.File) []Case {
	var out []Case
	for _, d := range f.Decls {
		r.vars = map[string]cpuset.CPUSet{}
		ast.Inspect(d, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == 1 && len(a.Rhs) == 1 {
				name, isName := a.Lhs[0].(*ast.Ident)
				if set, ok := r.set(a.Rhs[0]); ok && isName {
					r.vars[name.Name] = set
				}
			}
			lit, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			for _, read := range []func(*ast.CompositeLit) (Case, bool){r.positional, r.keyed, r.clustered} {
				if c, ok := read(lit); ok {
					out = append(out, c)
					return false
				}
			}
			return true
		})
	}
	return out
}

// positional reads composites of seven: what, machine, options, free CPUs, number,
// error, result; and of eight, with a group size after the number.
func (r *reader) positional(lit *ast.CompositeLit) (Case, bool) {
	n := len(lit.Elts)
	if n != 7 && n != 8 {
		return Case{}, false
	}
	at := slices.IndexFunc(lit.Elts, func(e ast.Expr) bool { _, ok := r.set(e); return ok })
	if at < 2 || at > 3 {
		return Case{}, false
	}
	what, ok1 := lit.Elts[0].(*ast.BasicLit)
	machine, ok2 := lit.Elts[1].(*ast.Ident)
	cpus, ok3 := lit.Elts[at+1].(*ast.BasicLit)
	failure, ok4 := lit.Elts[n-2].(*ast.BasicLit)
	free, ok5 := r.set(lit.Elts[at])
	want, ok6 := r.set(lit.Elts[n-1])
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 {
		return Case{}, false
	}
	return r.made(what, machine.Name, free, number(cpus), want, failure.Value != `""`)
}

// keyed reads composites that name machine, free CPUs, number or pod, and result.
func (r *reader) keyed(lit *ast.CompositeLit) (Case, bool) {
	what, ok1 := field(lit, "description").(*ast.BasicLit)
	machine, ok2 := field(lit, "topo").(*ast.Ident)
	free, ok3 := r.set(field(lit, "stDefaultCPUSet"))
	want, ok4 := r.set(field(lit, "expCSet"))
	if !ok1 || !ok2 || !ok3 || !ok4 || want.IsEmpty() {
		return Case{}, false
	}
	cpus := number(field(lit, "numRequested"))
	if cpus == 0 {
		cpus = requested(field(lit, "pod"))
	}
	return r.made(what, machine.Name, free, cpus, want, false)
}

// clustered reads composites of nri-plugins: from, cnt, expected.
func (r *reader) clustered(lit *ast.CompositeLit) (Case, bool) {
	what, ok1 := field(lit, "description").(*ast.BasicLit)
	free, ok2 := r.set(field(lit, "from"))
	want, ok3 := r.set(field(lit, "expected"))
	if !ok1 || !ok2 || !ok3 {
		return Case{}, false
	}
	text, err := strconv.Unquote(what.Value)
	cpus := number(field(lit, "cnt"))
	return Case{What: r.prefix + text, Machine: savedMachine, Free: free.String(), CPUs: cpus, Want: want.String(), Refused: want.IsEmpty()}, err == nil && cpus > 0
}

func (r *reader) made(what *ast.BasicLit, machine string, free cpuset.CPUSet, cpus int, want cpuset.CPUSet, refused bool) (Case, bool) {
	text, err := strconv.Unquote(what.Value)
	_, known := r.machines[r.prefix+machine]
	return Case{What: r.prefix + text, Machine: r.prefix + machine, Free: free.String(), CPUs: cpus, Want: want.String(), Refused: refused},
		err == nil && known && cpus > 0
}

// requested is how many whole CPUs a pod of one container asks for: the limit,
// where it equals the request; 0: it is none of that kind.
func requested(pod ast.Expr) int {
	call, ok := pod.(*ast.CallExpr)
	if !ok || len(call.Args) != 4 {
		return 0
	}
	request, ok1 := call.Args[2].(*ast.BasicLit)
	limit, ok2 := call.Args[3].(*ast.BasicLit)
	if !ok1 || !ok2 || request.Value != limit.Value {
		return 0
	}
	milli, err := strconv.Atoi(strings.TrimSuffix(strings.Trim(request.Value, `"`), "m"))
	if err != nil || milli%1000 != 0 {
		return 0
	}
	return milli / 1000
}

// field returns the value of a key of a composite, behind & too.
func field(e ast.Expr, name string) ast.Expr {
	if u, ok := e.(*ast.UnaryExpr); ok {
		e = u.X
	}
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, e := range lit.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
				return pair.Value
			}
		}
	}
	return nil
}

// number of a literal; 0 where there is none, as Go fills it in.
func number(e ast.Expr) int {
	if lit, ok := e.(*ast.BasicLit); ok {
		n, _ := strconv.Atoi(lit.Value)
		return n
	}
	return 0
}

// set reads an expression of a set: cpuset.New(1, 2), mustParseCPUSet(t, "0-3"), cpuset.MustParse("0-3"), a
// variable, all CPUs of a machine, unions and differences.
func (r *reader) set(e ast.Expr) (cpuset.CPUSet, bool) {
	if name, ok := e.(*ast.Ident); ok {
		set, known := r.vars[name.Name]
		return set, known
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return cpuset.New(), false
	}
	method, _ := call.Fun.(*ast.SelectorExpr)
	if method != nil && (method.Sel.Name == "Union" || method.Sel.Name == "Difference") && len(call.Args) == 1 {
		a, ok1 := r.set(method.X)
		b, ok2 := r.set(call.Args[0])
		if method.Sel.Name == "Union" {
			return a.Union(b), ok1 && ok2
		}
		return a.Difference(b), ok1 && ok2
	}
	if method != nil && method.Sel.Name == "CPUs" && len(call.Args) == 0 {
		return r.all(method.X)
	}
	name := ""
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		name = fun.Sel.Name
	}
	if name != "New" && name != "MustParse" && name != "mustParseCPUSet" {
		return cpuset.New(), false
	}
	var ids []int
	for _, arg := range call.Args {
		lit, ok := arg.(*ast.BasicLit)
		switch {
		case !ok && name == "mustParseCPUSet": // the test
		case !ok:
			return cpuset.New(), false
		case lit.Kind == token.STRING:
			s, err := topology.ParseList(strings.Trim(lit.Value, `"`))
			return s, err == nil
		default:
			ids = append(ids, number(lit))
		}
	}
	return cpuset.New(ids...), true
}

// all are the CPUs of a machine, given as its details.
func (r *reader) all(details ast.Expr) (cpuset.CPUSet, bool) {
	of, ok := details.(*ast.SelectorExpr)
	if !ok {
		return cpuset.New(), false
	}
	name, ok := of.X.(*ast.Ident)
	if !ok {
		return cpuset.New(), false
	}
	rows, known := r.machines[r.prefix+name.Name]
	var ids []int
	for _, row := range rows {
		ids = append(ids, row[0])
	}
	return cpuset.New(ids...), known
}
