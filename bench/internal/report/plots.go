package report

import (
	"cmp"
	"slices"
)

// Plots returns drawings of the results. It leaves out those without data.
func Plots(r *Results, titles []Title) []Plot {
	all := []Plot{
		{
			File: "refresh-objects.svg", Title: "Next complete snapshot after 1 change", XLabel: "pods", YLabel: "ms",
			LogX: true, LogY: true, Series: bySize(r, titles, RefreshTime),
		}, {
			File: "refresh-changes.svg", Title: "Next complete snapshot, " + count(r.ChangesAt) + " pods", XLabel: "changes", YLabel: "ms",
			LogX: true, LogY: true, Series: byAt(r, titles, r.ChangesAt, ChangesTime),
		}, {
			File: "heap-objects.svg", Title: "Live heap", XLabel: "pods", YLabel: "MB", Series: bySize(r, titles, HeapTotal),
		}, {
			File: "events-cores.svg", Title: "Events taken in", XLabel: "cores", YLabel: "events per second", Series: byAt(r, titles, 0, EventRate),
		}, {
			File: "heap-fields.svg", Title: "Live heap per object, by what is held of a pod", XLabel: "fields", YLabel: "bytes",
			LogX: true, LogY: true, Series: byFields(r, titles),
		}, {
			File: "heap-replicas.svg", Title: "Live heap of one replica of several that share", XLabel: "replicas", YLabel: "MB",
			Series: byReplicas(r.Apart[Shards], titles),
		},
	}
	return slices.DeleteFunc(all, func(p Plot) bool { return len(p.Series) == 0 })
}

// bySize returns a line for each consumer, over the sizes.
func bySize(r *Results, titles []Title, m Metric) []Series {
	return series(titles, func(consumer string) (points []Point) {
		for _, size := range r.Sizes {
			if v, ok := r.median(size.Pods, consumer, m, 0); ok {
				points = append(points, Point{float64(size.Pods), v})
			}
		}
		return points
	})
}

// byAt returns a line for each consumer, over the value that the metric depends on.
func byAt(r *Results, titles []Title, pods int, m Metric) []Series {
	at := r.ats(m)
	return series(titles, func(consumer string) (points []Point) {
		for _, x := range at {
			if v, ok := r.median(pods, consumer, m, x); ok {
				points = append(points, Point{float64(x), v})
			}
		}
		return points
	})
}

// byFields returns a line for each size, over the number of fields that a consumer holds.
func byFields(r *Results, titles []Title) (all []Series) {
	for _, size := range r.Sizes {
		one := Series{Name: count(size.Pods) + " pods"}
		for _, t := range titles {
			if v, ok := r.median(size.Pods, t.Consumer, HeapPerObject, 0); ok && t.Fields > 0 {
				one.Points = append(one.Points, Point{float64(t.Fields), v})
			}
		}
		slices.SortFunc(one.Points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
		if len(one.Points) > 1 {
			all = append(all, one)
		}
	}
	return all
}

// byReplicas returns a line for each size, over the number of replicas.
func byReplicas(r *Results, titles []Title) (all []Series) {
	if r == nil {
		return nil
	}
	for _, pods := range r.pods() {
		for _, s := range byAt(r, titles, pods, HeapTotal) {
			s.Name += ", " + count(pods) + " pods"
			all = append(all, s)
		}
	}
	return all
}

func series(titles []Title, points func(consumer string) []Point) (all []Series) {
	for _, t := range titles {
		if p := points(t.Consumer); len(p) > 0 && !t.Minor {
			all = append(all, Series{t.Text, p})
		}
	}
	return all
}

// ats returns the values at which a metric was measured, in order.
func (r *Results) ats(m Metric) (all []int) {
	for _, s := range r.Samples {
		if s.Metric == m && !slices.Contains(all, s.At) {
			all = append(all, s.At)
		}
	}
	slices.Sort(all)
	return all
}
