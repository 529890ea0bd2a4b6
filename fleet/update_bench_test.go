package fleet

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

// BenchmarkUpdate: an Update of a watch of 200 clusters with 50 config maps and 50 services each,
// in which nothing has changed, or one object in one cluster.
func BenchmarkUpdate(b *testing.B) {
	const clusters, objects = 200, 50
	f, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for i := range clusters {
		var all []kates.Object
		for j := range objects {
			all = append(all, configMap(fmt.Sprint("m", j)), service(fmt.Sprint("s", j)))
		}
		k := newCluster(b, types.UID(fmt.Sprint(i)), all...)
		if err := f.Set(Member{Name: fmt.Sprintf("c-%04d", i), Client: k.Client}); err != nil {
			b.Fatal(err)
		}
	}
	s, err := Watch[allOfThem](context.Background(), f)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var snap allOfThem
	for len(snap.Services) < clusters*objects {
		<-s.Changed()
		updated(b, s, &snap)
	}
	b.Run("nothing", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			updated(b, s, &snap)
		}
	})
	b.Run("one change", func(b *testing.B) {
		b.ReportAllocs()
		client, marks := f.Cluster("c-0000").Client(), 0
		for b.Loop() {
			b.StopTimer()
			m := configMap("m0")
			marks++
			m.Annotations = map[string]string{"mark": fmt.Sprint(marks)}
			if err := client.Update(context.Background(), m, nil); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if !updated(b, s, &snap) {
				b.Fatal("nothing has changed")
			}
		}
	})
}

type allOfThem struct {
	Maps     map[string][]*kates.ConfigMap
	Services []Object[*kates.Service]
	Missing  []Missing
}

func updated(b *testing.B, s *Snapshots[allOfThem], snap *allOfThem) (changed bool) {
	b.Helper()
	changed, err := s.Update(context.Background(), snap)
	if err != nil {
		b.Fatal(err)
	}
	return changed
}
