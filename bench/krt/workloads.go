package main

import (
	"fmt"

	"istio.io/istio/pkg/kube/krt"
)

func newWorkload(c command, indexed bool) (workload, error) {
	if c.Objects < 1 || c.Workload != "routes" && (c.Policies < 1 || c.Policies > c.Objects) {
		return nil, fmt.Errorf("%s of %d objects and %d policies", c.Workload, c.Objects, c.Policies)
	}
	switch c.Workload {
	case "routes":
		return newRoutes(c.Objects), nil
	case "per pod":
		return &perPod{cluster: newCluster(c)}, nil
	case "per policy":
		return &perPolicy{cluster: newCluster(c), indexed: indexed}, nil
	}
	return nil, fmt.Errorf("there is no workload %q", c.Workload)
}

// output is a collection of results, and what has changed in it.
type output[R interface{ line() string }] struct {
	out     krt.Collection[R]
	changed chan int
	stop    chan struct{}
}

// follow waits for the first results, and counts what changes from then on.
func (o *output[R]) follow(out krt.Collection[R]) {
	o.out = out
	out.WaitUntilSynced(o.stop)
	o.changed = make(chan int, 1024)
	out.RegisterBatch(func(events []krt.Event[R]) { o.changed <- len(events) }, false)
}

func (o *output[R]) awaited() <-chan int { return o.changed }

func (o *output[R]) results() (all []string) {
	for _, r := range o.out.List() {
		all = append(all, r.line())
	}
	return all
}

func (o *output[R]) values() any { return o.out.List() }

func (o *output[R]) options() krt.OptionsBuilder {
	o.stop = make(chan struct{})
	return krt.NewOptionsBuilder(o.stop, "bench", nil)
}

func (o *output[R]) forget() {
	if o.stop != nil {
		close(o.stop)
	}
	o.out, o.stop = nil, nil
}
