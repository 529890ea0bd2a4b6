// Package derived has programs that keep the same results up to date in different ways:
// contenders. `bench derive` runs each of them in a process of its own, gives all the same
// changes, and compares what they have after each.
//
// The module bench/krt has the ways of Istio's krt. It cannot import this package: it has the same
// objects, results, sums and commands.
package derived

import (
	"fmt"
	"hash/fnv"
	"io"
	"runtime"

	"github.com/kates-go/kates/bench/internal/dialog"
	"github.com/kates-go/kates/bench/internal/stats"
	"github.com/kates-go/kates/bench/internal/usage"
)

// Workload is what is derived of what.
type Workload string

const (
	// Routes is a routing table: a row per Service, of its EndpointSlices, which an index finds,
	// and of the Deployment with its name.
	Routes Workload = "routes"
	// PerPod is a result per pod, of the policies that select it.
	PerPod Workload = "per pod"
	// PerPolicy is a result per policy, of the pods that it selects.
	PerPolicy Workload = "per policy"
)

// Kind is what a change changes.
type Kind string

const (
	Service    Kind = "service"
	Slice      Kind = "slice"
	Deployment Kind = "deployment"
	Pod        Kind = "pod"
	Policy     Kind = "policy"
	// Wide is the first policy, which selects all pods from then on.
	Wide Kind = "wide"
)

// Change gives an object another version. So many results are others after it: one with the same
// version is the same.
type Change struct {
	Kind    Kind `json:"kind"`
	At      int  `json:"at"`
	Version int  `json:"version"`
	Results int  `json:"results"`
}

// Command is what a contender is asked to do.
type Command struct {
	Do What `json:"do"`
	// Workload, Objects and Policies are of Start: there are so many objects of each kind.
	Workload Workload `json:"workload,omitempty"`
	Objects  int      `json:"objects,omitempty"`
	Policies int      `json:"policies,omitempty"`
	// Changes are of Check and Measure. Those of Measure are made in Rounds: the last one of each
	// object is what it is before the first one.
	Changes []Change `json:"changes,omitempty"`
	Rounds  int      `json:"rounds,omitempty"`
}

// What a contender does.
type What string

const (
	// Start makes the objects, and measures the first results.
	Start What = "start"
	// Check makes changes, and sums up the results after each.
	Check What = "check"
	// Measure makes changes, and measures them.
	Measure What = "measure"
	// Own measures what the functions of the last change take by themselves, if all of them ran.
	Own What = "own"
	// Memory measures what is held besides objects and values. The contender ends with it.
	Memory What = "memory"
)

// Answer is what a contender answers.
type Answer struct {
	CPU   float64  `json:"cpu,omitempty"`   // seconds of Start and Own, and of all changes of Measure
	Bytes float64  `json:"bytes,omitempty"` // of Memory
	Sums  []string `json:"sums,omitempty"`  // of the results, after each change; in the end, for Start and Measure
	dialog.Outcome
}

// contender keeps results up to date.
type contender interface {
	// first makes the first results. It forgets what there was.
	first() error
	// object makes the new version of an object.
	object(Change) (any, error)
	// next makes the next snapshot, with that object. The function that it returns brings the
	// results up to date with this snapshot.
	next(c Change, object any) func() error
	// results yields the results as lines, in any order.
	results(yield func(line string) bool)
	// values returns what holds the values, and forget drops all that is held besides.
	values() any
	forget()
}

// owner is a contender that can run its functions alone.
type owner interface{ own() (func(), error) }

// Serve runs a contender: a command per line, and an answer per line.
func Serve(name string, in io.Reader, out io.Writer) error {
	s := server{name: name}
	return dialog.Serve(in, out, s.do)
}

type server struct {
	name string
	contender
}

func (s *server) do(c Command) (a Answer, err error) {
	if s.contender == nil && c.Do != Start {
		return a, fmt.Errorf("%s before a start", c.Do)
	}
	switch c.Do {
	case Start:
		if s.contender, err = newContender(s.name, c); err != nil {
			return a, err
		}
		a.CPU, err = s.firstResults()
		a.Sums = []string{s.sum()}
	case Check:
		a.Sums, err = s.check(c.Changes)
	case Measure:
		a.CPU, err = s.rounds(c.Changes, c.Rounds)
		a.Sums = []string{s.sum()}
	case Own:
		o, is := s.contender.(owner)
		if !is {
			return a, fmt.Errorf("%s has no functions to run", s.name)
		}
		f, err := o.own()
		if err != nil {
			return a, err
		}
		runtime.GC()
		a.CPU, _ = seconds(func() error { f(); return nil })
	case Memory:
		values := s.values()
		all := heap()
		s.forget()
		a.Bytes = all - heap()
		runtime.KeepAlive(values)
	default:
		return a, fmt.Errorf("%q is no command", c.Do)
	}
	return a, err
}

// firstResults makes the first results some times, each time from nothing, as krt's server does. It
// returns the median of the CPU times. The first time has the process get its memory from the
// system: the median is of a process that has the memory.
func (s *server) firstResults() (float64, error) {
	var all []float64
	for range 3 {
		s.forget()
		runtime.GC()
		cpu, err := seconds(s.first)
		if err != nil {
			return 0, err
		}
		all = append(all, cpu)
	}
	return stats.Median(all), nil
}

// check makes changes, and returns the sums after each.
func (s *server) check(changes []Change) (sums []string, err error) {
	for _, c := range changes {
		o, err := s.object(c)
		if err != nil {
			return nil, err
		}
		if err := s.next(c, o)(); err != nil {
			return nil, err
		}
		sums = append(sums, s.sum())
	}
	return sums, nil
}

// rounds makes changes in rounds, and returns the CPU time of what follows from them. The
// snapshots of a round are made before, so they cost nothing here. There are few of them, so that
// they are in the processor's caches, as one is that a program has just got.
func (s *server) rounds(changes []Change, n int) (cpu float64, err error) {
	objects := make([]any, len(changes))
	for i, c := range changes {
		if objects[i], err = s.object(c); err != nil {
			return 0, err
		}
		if err := s.next(c, objects[i])(); err != nil {
			return 0, err
		}
	}
	updates := make([]func() error, len(changes))
	for i, c := range changes {
		updates[i] = s.next(c, objects[i])
	}
	round := func() error {
		for _, update := range updates {
			if err := update(); err != nil {
				return err
			}
		}
		return nil
	}
	runtime.GC()
	return seconds(func() error {
		for range n {
			if err := round(); err != nil {
				return err
			}
		}
		return nil
	})
}

// seconds is the CPU time of a function, with what the process does meanwhile.
func seconds(f func() error) (float64, error) {
	before, err := usage.CPUSeconds()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := usage.CPUSeconds()
	return after - before, err
}

// sum is a sum of the results that does not depend on their order.
func (s *server) sum() string {
	var sum uint64
	for line := range s.results {
		h := fnv.New64a()
		_, _ = h.Write([]byte(line))
		sum += h.Sum64()
	}
	return fmt.Sprintf("%016x", sum)
}

// heap is the live heap.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
