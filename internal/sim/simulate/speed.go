package simulate

import (
	"time"

	"k8s.io/utils/cpuset"
)

// speeds has what makes CPUs unequal: siblings, caches and memory nodes. A thread uses CPU time as on any
// other CPU, but gets more or less work done in it.
type speeds struct {
	perCore, perCache, perNode int // CPUs
	sibling, remote            float64
	cold                       time.Duration
	busy                       []int           // busy CPUs of each core
	mems                       []cpuset.CPUSet // of each group
}

// addSpeeds sets a host's speeds, or none if all CPUs are equal.
func (h *host) addSpeeds() {
	t := &h.scenario.Host.Topology
	if t.Equal() {
		return
	}
	h.speeds = &speeds{
		perCore: max(1, t.ThreadsPerCore), perCache: h.ncpu / max(1, t.Caches), perNode: h.ncpu / max(1, t.Nodes),
		sibling: max(1, t.Sibling), remote: max(1, t.Remote), cold: h.scenario.Host.ColdCache,
	}
	h.speeds.busy = make([]int, h.ncpu/h.speeds.perCore)
	h.speeds.mems = []cpuset.CPUSet{cpuset.New()}
	for i := range h.scenario.Cgroups {
		h.speeds.mems = append(h.speeds.mems, h.scenario.EffectiveMems(&h.scenario.Cgroups[i]))
	}
}

// speedOf is the speed of a thread on a CPU: 1 is that of a core without a busy sibling, with local memory.
func (s *speeds) speedOf(t *thread, c int) float64 {
	speed := 1.0
	if n := float64(s.busy[c/s.perCore]); n > 1 {
		speed = min(n, 1+(s.sibling-1)*(n-1)) / n
	}
	if t.node != c/s.perNode {
		speed /= s.remote
	}
	return speed
}

// progress brings the running thread's work up to date.
func (h *host) progress(c int) {
	cur := &h.cpus[c]
	h.threads[cur.cur].left -= time.Duration(float64(h.now-cur.worked) * cur.speed)
	cur.worked = h.now
}

// remains is how long the running thread needs for its work.
func (h *host) remains(c int) time.Duration {
	left := h.threads[h.cpus[c].cur].left
	if h.speeds == nil {
		return left
	}
	return max(0, time.Duration(float64(left)/h.cpus[c].speed+0.5))
}

// threadChanged updates a CPU that now runs another thread; -1: none. before says whether it ran one.
func (h *host) threadChanged(c int, before bool) {
	s, t := h.speeds, h.cpus[c].cur
	core := c / s.perCore
	if t >= 0 {
		h.arrivedOn(&h.threads[t], c)
	}
	if before != (t >= 0) {
		if t >= 0 {
			s.busy[core]++
		} else {
			s.busy[core]--
		}
		for other := core * s.perCore; other < (core+1)*s.perCore; other++ {
			if running := h.cpus[other].cur; other != c && running >= 0 {
				h.progress(other)
				h.cpus[other].speed = s.speedOf(&h.threads[running], other)
				h.expectDone(other)
			}
		}
	}
	if t >= 0 {
		h.cpus[c].worked, h.cpus[c].speed = h.now, s.speedOf(&h.threads[t], c)
	}
}

// arrivedOn handles a thread's beginning on a CPU. Its first CPU decides where its memory lies, because the
// kernel allocates memory at the first touch. Another cache than the last time is cold.
func (h *host) arrivedOn(t *thread, c int) {
	s := h.speeds
	cache := c / s.perCache
	if t.node < 0 {
		t.node = c / s.perNode
		if mems := s.mems[t.group]; t.group > 0 && !mems.Contains(t.node) {
			t.node = mems.List()[0]
		}
	} else if cache != t.cache && t.left < endless {
		t.left += s.cold
	}
	t.cache = cache
}

// chooseNear is choose for a thread whose CPU is busy. It returns an idle CPU that shares its cache, of a
// wholly idle core if there is one (select_idle_core), else one elsewhere; -1: none is idle.
func (h *host) chooseNear(t int) int {
	th, s := &h.threads[t], h.speeds
	best, least := -1, 4
	for i := range h.ncpu {
		c := (th.cpu + i) % h.ncpu
		if !h.idle.has(c) || !th.allowed.has(c) {
			continue
		}
		rank := 0
		if s.busy[c/s.perCore] > 0 {
			rank++
		}
		if c/s.perCache != th.cpu/s.perCache {
			rank += 2
		}
		if rank < least {
			best, least = c, rank
		}
		if rank == 0 {
			break
		}
	}
	return best
}

// spreadCores lets a thread that shares its core go to a wholly idle core: the load balancer's occasional
// push from a busy group of siblings.
func (h *host) spreadCores(c int) {
	s := h.speeds
	t := h.cpus[c].cur
	if h.tick == 0 || t < 0 || s.busy[c/s.perCore] < 2 || (int(h.now/h.tick)+c)%balanceTicks != 0 {
		return
	}
	th := &h.threads[t]
	for i := range h.ncpu {
		to := (c + i) % h.ncpu
		if s.busy[to/s.perCore] > 0 || !h.idle.has(to) || !th.allowed.has(to) || h.blocked(th.group, to) ||
			h.bounded && !h.fits(th.group, c, to) {
			continue
		}
		h.move(t, to)
		h.schedule(c, th.group)
		if h.cpus[to].cur < 0 {
			h.schedule(to, th.group)
		}
		return
	}
}
