package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/kates"
)

// Status is the state of a fleet. It prints as a table and marshals to JSON.
type Status struct {
	Sources  []SourceStatus  `json:"sources"`
	Clusters []ClusterStatus `json:"clusters"`
}

// SourceStatus is the state of a source.
type SourceStatus struct {
	Name string `json:"name"`
	// Clusters is how many the source has named last.
	Clusters int `json:"clusters"`
	// Said: the source has named its clusters at least once.
	Said bool `json:"said"`
	// Error is why the source does not run now, or what is wrong with what it says. Its clusters
	// stay.
	Error string `json:"error,omitempty"`
}

// ClusterStatus is the state of a cluster.
type ClusterStatus struct {
	Name   string            `json:"name"`
	UID    types.UID         `json:"uid,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Health is by the fleet's own requests. It has no phase while there is no configuration that
	// can be used; Health.Rotation says why then.
	Health
	// Missing is why the snapshots of a watch lack the cluster, or may be outdated for it. It is in
	// the status of a watch ([Snapshots.Status]) alone.
	Missing string `json:"missing,omitempty"`
	// Watches is the state of the cluster's queries.
	Watches kates.Status `json:"watches"`
}

// Status returns the state of all sources and clusters. It does not wait for any of them.
func (f *Fleet) Status() Status {
	var s Status
	f.mu.Lock()
	clusters := make(map[string]*Cluster, len(f.seats))
	failed := make(map[string]string)
	for name, seat := range f.seats {
		clusters[name] = seat.cluster
		failed[name] = textOf(seat.err)
	}
	for _, from := range f.sources {
		s.Sources = append(s.Sources, SourceStatus{from.name, len(from.members), from.said, textOf(from.trouble())})
	}
	f.mu.Unlock()
	for i, from := range f.sources { // which never change
		if s.Sources[i].Error == "" {
			s.Sources[i].Error = textOf(troubleOf(from.source))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		if c := clusters[name]; c != nil {
			s.Clusters = append(s.Clusters, ClusterStatus{
				Name: name, UID: c.UID(), Labels: c.Labels(), Health: c.Health(), Watches: c.client.Status(),
			})
			continue
		}
		s.Clusters = append(s.Clusters, ClusterStatus{Name: name, Health: Health{Rotation: failed[name]}})
	}
	return s
}

// Err says what is wrong now: sources that do not run, clusters that do not answer, whose newest
// configuration is not in use, or that a watch's snapshots lack, and watches that are not open. It
// is nil while all is well.
func (s Status) Err() error {
	var errs []error
	for _, from := range s.Sources {
		if from.Error != "" {
			errs = append(errs, fmt.Errorf("%s: %s", plain.Line(from.Name), plain.Line(from.Error)))
		}
	}
	for _, c := range s.Clusters {
		if c.Rotation != "" && c.Phase == "" {
			errs = append(errs, fmt.Errorf("cluster %q has no configuration that can be used: %s", c.Name, plain.Line(c.Rotation)))
		} else if c.Rotation != "" {
			errs = append(errs, fmt.Errorf("cluster %q: its newest configuration is not in use: %s", c.Name, plain.Line(c.Rotation)))
		}
		switch {
		case c.Phase != Up && c.Phase != "":
			errs = append(errs, fmt.Errorf("cluster %q is %s since %s: %s", c.Name, c.Phase, c.Since.Format(time.RFC3339), plain.Line(c.Error)))
		case c.Phase == Up && c.Missing != "":
			errs = append(errs, fmt.Errorf("cluster %q is missing: %s", c.Name, plain.Line(c.Missing)))
		case c.Watches.Err() != nil:
			errs = append(errs, fmt.Errorf("cluster %q: %w", c.Name, c.Watches.Err()))
		}
	}
	return errors.Join(errs...)
}

// String prints the status as a table.
func (s Status) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SOURCE\tCLUSTERS\tERROR")
	for _, from := range s.Sources {
		plain.Fprintf(w, "%s\t%d\t%s\n", from.Name, from.Clusters, from.Error)
	}
	_ = w.Flush()
	alike := s.alike()
	fmt.Fprintln(w, "CLUSTER\tSTATE\tSINCE\tQUERIES\tOBJECTS\tUID\tERROR")
	for _, c := range s.Clusters {
		objects := 0
		for _, q := range c.Watches.Queries {
			objects += q.Objects
		}
		why := c.Error
		if c.Rotation != "" && c.Phase != "" {
			why = strings.TrimPrefix(why+"; its newest configuration is not in use: "+c.Rotation, "; ")
		} else if c.Rotation != "" {
			why = c.Rotation
		}
		if c.Phase == Up && c.Missing != "" {
			why = strings.TrimSuffix("missing: "+c.Missing+"; "+why, "; ")
		}
		uid := string(c.UID)
		if others := alike[c.Name]; others != "" {
			uid += " (as " + others + ")"
		}
		plain.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", c.Name, cmp.Or(string(c.Phase), "no client"), age(c.Since), len(c.Watches.Queries), objects, uid, why)
	}
	_ = w.Flush() // a strings.Builder does not fail
	return b.String()
}

// alike returns, by name, the other clusters with the UID of each. They may be one cluster with two
// names, or one that claims the UID of the other.
func (s Status) alike() map[string]string {
	named := make(map[types.UID][]string)
	for i := range s.Clusters {
		if c := &s.Clusters[i]; c.UID != "" {
			named[c.UID] = append(named[c.UID], c.Name)
		}
	}
	all := make(map[string]string)
	for _, names := range named {
		for i, name := range names {
			if len(names) > 1 {
				all[name] = strings.Join(slices.Concat(names[:i], names[i+1:]), ", ")
			}
		}
	}
	return all
}

func age(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return time.Since(since).Truncate(time.Second).String()
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
