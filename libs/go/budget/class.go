package budget

import "math"

// Class says what a task may be made to wait for.
type Class int

const (
	// IO is for short tasks that do not block: answers from memory, health checks, the work of an event loop.
	IO Class = iota
	// App is for the work of requests. It may wait for some milliseconds.
	App
	// Background is for work that nobody waits for. It yields to App.
	Background

	classes = 3
)

// Classes are all classes, the most urgent first.
var Classes = [classes]Class{IO, App, Background}

// String is the class as gauges name it.
func (c Class) String() string { return [...]string{"io", "app", "background"}[c] }

// sizes are what a limit means for a process.
type sizes struct {
	// GOMAXPROCS is 0 where Go's own choice is right.
	GOMAXPROCS int
	// Permits are how many tasks of each class run at once; 0: as many as come.
	Permits [classes]int
}

// sizesOf is what a limit of so many CPUs means, on a machine with so many. paced says that App and Background hold back in
// time. Then the limit is rounded up, since pacing keeps its fraction, and GOMAXPROCS has room for IO beside App. Without
// pacing it is rounded down: a wider process would use up the quota early. A limit that the machine does not have is none.
// GOMAXPROCS may be above the machine's CPUs: IO then has a thread that the kernel runs beside those of App.
func sizesOf(limitCPUs float64, hostCPUs int, paced bool) sizes {
	if !(limitCPUs > 0) || limitCPUs >= float64(hostCPUs) {
		return sizes{}
	}
	up, down := int(math.Ceil(limitCPUs)), max(1, int(limitCPUs))
	s := sizes{Permits: [classes]int{IO: 4 * up, App: down, Background: max(1, down/2)}}
	if paced {
		s.Permits[App] = up
	}
	if limitCPUs < 2 {
		s.GOMAXPROCS = down
		if paced {
			s.GOMAXPROCS = up + 1
		}
	}
	return s
}
