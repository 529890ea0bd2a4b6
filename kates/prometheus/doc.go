// Package prometheus makes metrics of what clients of kates do. It is a module of its own, so that
// client_golang stays out of the library.
//
//	m := prometheus.New()
//	registry.MustRegister(m)
//	client, err := kates.NewClient(config, kates.WithObserver(m))
//
// That is all. A [Metrics] finds the clients that have it as an observer by itself, and forgets
// them when they are closed. It may be registered anywhere, in controller-runtime's registry too
// (sigs.k8s.io/controller-runtime/pkg/metrics.Registry). For a fleet, give it to all clusters:
//
//	f, err := fleet.New(fleet.Options{Client: []kates.Option{kates.WithObserver(m)}})
//
// The graphs of package derive are added by [Metrics.Derived].
//
// # Labels
//
// The label cluster is the name of the cluster: that in the fleet, or what
// [kates.WithClusterName] says. It is empty for a client without one, and an empty label is none
// for Prometheus. All other labels name what the program has written: watches ([kates.WithName]),
// queries, loops and kinds. No label has the name, the namespace or a label of an object, or the
// text of an error. The number of series grows with the watches and queries of the program, and
// never with the objects of the cluster. There is also a bound: a label has 250 values at most (a
// resource 1000). What comes after that is counted as "other".
//
// Watches of one name are one series, and so are the streams of one resource. Counts are then the
// sum of all, and ages those of the oldest. A counter never falls because one of several watches
// has ended.
//
// docs/metrics.md has all metrics. The folders dashboards and alerts have a dashboard for Grafana,
// and rules for Prometheus.
package prometheus
