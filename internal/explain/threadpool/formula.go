package threadpool

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A formula is arithmetic on a few named figures, such as "max(8, ceil(2*n))": numbers, + - * /, brackets,
// and the functions below. It has no loops and no memory, so a table from any source is safe to evaluate.
const (
	maxFormula = 200 // bytes
	maxDepth   = 20  // of brackets and signs
)

// functions take at least least values; those that take one take no more.
var functions = map[string]struct {
	values int
	of     func([]float64) float64
}{
	"min":   {2, func(v []float64) float64 { return fold(v, math.Min) }},
	"max":   {2, func(v []float64) float64 { return fold(v, math.Max) }},
	"ceil":  {1, func(v []float64) float64 { return math.Ceil(v[0]) }},
	"floor": {1, func(v []float64) float64 { return math.Floor(v[0]) }},
	"sqrt":  {1, func(v []float64) float64 { return math.Sqrt(v[0]) }},
	// log2 is the whole part of the logarithm, and 0 below 1, as HotSpot's log2i.
	"log2": {1, func(v []float64) float64 {
		if v[0] < 1 {
			return 0
		}
		return math.Floor(math.Log2(v[0]))
	}},
}

func fold(v []float64, f func(a, b float64) float64) float64 {
	out := v[0]
	for _, x := range v[1:] {
		out = f(out, x)
	}
	return out
}

// expr is a parsed formula: a number, a figure's name, or a function or operator with its values.
type expr struct {
	number float64
	name   string // of a figure, if call is nil and name is not ""
	call   func([]float64) float64
	values []*expr
}

// eval returns the formula's value for figures with the names that the parser knew.
func (e *expr) eval(figures map[string]float64) float64 {
	switch {
	case e.call != nil:
		v := make([]float64, len(e.values))
		for i, x := range e.values {
			v[i] = x.eval(figures)
		}
		return e.call(v)
	case e.name != "":
		return figures[e.name]
	}
	return e.number
}

// uses reports whether the formula depends on a figure.
func (e *expr) uses(figure string) bool {
	if e.call == nil && e.name == figure {
		return true
	}
	for _, x := range e.values {
		if x.uses(figure) {
			return true
		}
	}
	return false
}

// parseFormula parses a formula of the named figures.
func parseFormula(text string, figures ...string) (*expr, error) {
	if len(text) > maxFormula {
		return nil, fmt.Errorf("formula of %d bytes: at most %d", len(text), maxFormula)
	}
	p := &formulaParser{text: text, rest: text, figures: figures}
	e, err := p.sum()
	if err == nil && p.peek() != 0 {
		err = p.wrong("an operator or the end is expected")
	}
	return e, err
}

type formulaParser struct {
	text, rest string
	figures    []string
	depth      int
}

func (p *formulaParser) wrong(why string) error {
	return fmt.Errorf("formula %q at byte %d: %s", p.text, len(p.text)-len(p.rest)+1, why)
}

// peek returns the next byte that is no space, or 0 at the end.
func (p *formulaParser) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " ")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *formulaParser) accept(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *formulaParser) sum() (*expr, error) {
	return p.chain(p.product, map[byte]func([]float64) float64{
		'+': func(v []float64) float64 { return v[0] + v[1] },
		'-': func(v []float64) float64 { return v[0] - v[1] },
	})
}

func (p *formulaParser) product() (*expr, error) {
	return p.chain(p.value, map[byte]func([]float64) float64{
		'*': func(v []float64) float64 { return v[0] * v[1] },
		'/': func(v []float64) float64 { return v[0] / v[1] },
	})
}

// chain parses values joined by operators of one rank, from the left.
func (p *formulaParser) chain(next func() (*expr, error), operators map[byte]func([]float64) float64) (*expr, error) {
	left, err := next()
	for err == nil {
		call, ok := operators[p.peek()]
		if !ok {
			return left, nil
		}
		p.rest = p.rest[1:]
		var right *expr
		right, err = next()
		left = &expr{call: call, values: []*expr{left, right}}
	}
	return nil, err
}

func (p *formulaParser) value() (*expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.wrong(fmt.Sprintf("nested deeper than %d", maxDepth))
	}
	defer func() { p.depth-- }()
	c := p.peek()
	switch {
	case p.accept('('):
		e, err := p.sum()
		if err == nil && !p.accept(')') {
			err = p.wrong(") is expected")
		}
		return e, err
	case isDigit(c):
		return p.number()
	case isASCIILetter(c):
		return p.word()
	}
	return nil, p.wrong("a number, a figure or ( is expected")
}

func (p *formulaParser) number() (*expr, error) {
	word := p.take(func(c byte) bool { return isDigit(c) || c == '.' })
	v, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return nil, p.wrong("not a number: " + word)
	}
	return &expr{number: v}, nil
}

func (p *formulaParser) word() (*expr, error) {
	word := p.take(func(c byte) bool { return isASCIILetter(c) || isDigit(c) })
	if !p.accept('(') {
		for _, f := range p.figures {
			if f == word {
				return &expr{name: word}, nil
			}
		}
		return nil, p.wrong(fmt.Sprintf("unknown figure %s: known are %s", word, strings.Join(p.figures, ", ")))
	}
	f, ok := functions[word]
	if !ok {
		return nil, p.wrong("unknown function " + word)
	}
	e := &expr{call: f.of}
	for {
		v, err := p.sum()
		if err != nil {
			return nil, err
		}
		e.values = append(e.values, v)
		if !p.accept(',') {
			break
		}
	}
	if !p.accept(')') {
		return nil, p.wrong(") is expected")
	}
	if n := len(e.values); n < f.values || n > 1 && f.values == 1 {
		return nil, p.wrong(fmt.Sprintf("%s of %d values", word, n))
	}
	return e, nil
}

func (p *formulaParser) take(is func(byte) bool) string {
	n := 0
	for n < len(p.rest) && is(p.rest[n]) {
		n++
	}
	word := p.rest[:n]
	p.rest = p.rest[n:]
	return word
}

func isASCIILetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
