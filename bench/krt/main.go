// Command krt keeps the results of package derived of module bench up to date, with Istio's krt.
// `make bench-derive` builds it, and measures it beside the others.
//
// It is a module of its own without kates: krt needs other versions of Kubernetes' modules. So it
// has the same commands, objects and results as package derived, and the driver compares the
// results.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"istio.io/istio/pkg/log"
)

// command and answer are those of package derived.
type command struct {
	Do       string   `json:"do"`
	Workload string   `json:"workload"`
	Objects  int      `json:"objects"`
	Policies int      `json:"policies"`
	Changes  []change `json:"changes"`
	Rounds   int      `json:"rounds"`
}

type change struct {
	Kind    string `json:"kind"`
	At      int    `json:"at"`
	Version int    `json:"version"`
	Results int    `json:"results"`
}

type answer struct {
	CPU   float64  `json:"cpu,omitempty"`
	Bytes float64  `json:"bytes,omitempty"`
	Sums  []string `json:"sums,omitempty"`
	Error string   `json:"error,omitempty"`
}

// workload is made of collections of krt.
type workload interface {
	// first makes the collections, and returns when they have their first results.
	first()
	// object makes another version of an object. The function that it returns puts it into its
	// collection.
	object(change) (func(), error)
	// awaited receives the number of results that have changed.
	awaited() <-chan int
	results() []string
	values() any
	forget()
}

func main() {
	// Istio logs to the standard output, where the answers are.
	logs := log.DefaultOptions()
	logs.OutputPaths = []string{"stderr"}
	if err := log.Configure(logs); err != nil {
		fmt.Fprintln(os.Stderr, "krt:", err)
		os.Exit(1)
	}
	for _, scope := range log.Scopes() {
		scope.SetOutputLevel(log.ErrorLevel)
	}
	if err := serve(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "krt:", err)
		os.Exit(1)
	}
}

func serve(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 || args[0] != "krt" && args[0] != "krt-index" {
		return errors.New("say krt or krt-index")
	}
	s := server{indexed: args[0] == "krt-index"}
	read, write := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var c command
		if err := read.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		a, err := s.do(c)
		if err != nil {
			a.Error = err.Error()
		}
		if err := write.Encode(a); err != nil {
			return err
		}
	}
}

type server struct {
	indexed bool
	workload
}

func (s *server) do(c command) (a answer, err error) {
	if s.workload == nil && c.Do != "start" {
		return a, fmt.Errorf("%s before a start", c.Do)
	}
	switch c.Do {
	case "start":
		if s.workload, err = newWorkload(c, s.indexed); err != nil {
			return a, err
		}
		a.CPU = s.firstResults()
		a.Sums = []string{s.sum()}
	case "check":
		a.Sums, err = s.check(c.Changes)
	case "measure":
		a.CPU, err = s.rounds(c.Changes, c.Rounds)
		a.Sums = []string{s.sum()}
	case "memory":
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

// firstResults makes the first results some times, each time from nothing. It returns the median of
// the CPU times.
func (s *server) firstResults() float64 {
	var all []float64
	for range 3 {
		s.forget()
		runtime.GC()
		before := cpu()
		s.first()
		all = append(all, cpu()-before)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// check makes changes, and returns the sums after each.
func (s *server) check(changes []change) (sums []string, err error) {
	for _, c := range changes {
		put, err := s.object(c)
		if err != nil {
			return nil, err
		}
		if err := s.await(put, c); err != nil {
			return nil, err
		}
		sums = append(sums, s.sum())
	}
	return sums, nil
}

// rounds makes changes in rounds, and returns the CPU time. The first round is not measured.
func (s *server) rounds(changes []change, n int) (used float64, err error) {
	puts := make([]func(), len(changes))
	for i, c := range changes {
		if puts[i], err = s.object(c); err != nil {
			return 0, err
		}
	}
	for round := range n + 1 {
		if round == 1 {
			runtime.GC()
			used = cpu()
		}
		for i, c := range changes {
			if err := s.await(puts[i], c); err != nil {
				return 0, err
			}
		}
	}
	return cpu() - used, nil
}

// patience is how long the results of a change may take.
const patience = 2 * time.Minute

// await puts an object into its collection, and waits until all results that it concerns have
// changed.
func (s *server) await(put func(), c change) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	put()
	for changed := 0; changed < c.Results; {
		select {
		case n := <-s.awaited():
			changed += n
		case <-late.C:
			return fmt.Errorf("%d of %d results have changed after %v, of %s %d", changed, c.Results, patience, c.Kind, c.At)
		}
	}
	return nil
}

// sum is a sum of the results that does not depend on their order.
func (s *server) sum() string {
	var sum uint64
	for _, line := range s.results() {
		h := fnv.New64a()
		_, _ = h.Write([]byte(line))
		sum += h.Sum64()
	}
	return fmt.Sprintf("%016x", sum)
}

// cpu is the CPU time of the process, in seconds.
func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
