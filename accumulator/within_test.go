package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// narrow is a source of all namespaces that notes the namespaces of requests.
type narrow struct {
	source.Plain
	within func(namespace string) source.Source
}

func (n narrow) Within(namespace string) source.Source { return n.within(namespace) }

func TestG4AWriteIsSettledByAListOfTheObjectsNamespace(t *testing.T) {
	var s *sim.Server
	var asked []string
	config := stream.Config{StreamLists: true, Source: func(r object.Resource, namespace string, form object.Form) source.Source {
		return narrow{source.Plain{ListerWatcherWithContext: s.Source(r, namespace, form)}, func(namespace string) source.Source {
			asked = append(asked, namespace)
			return source.Plain{ListerWatcherWithContext: s.Source(r, namespace, form)}
		}}
	}}
	sim.Bubble(t, config, func(t *testing.T, fresh *sim.Server, streams *streamset.Set) {
		s = fresh
		q := sim.Query("A", "as")
		// only the server can judge it
		q.Fields = fields.OneTermNotEqualSelector("spec.node", "n1")
		all := watching(t, streams, collect.Options{}, q)
		q.Namespace = "ns"
		some := watching(t, streams, collect.Options{}, q)
		synctest.Wait()
		s.Late(time.Hour)
		sim.NewClient(s, streams).Put("as", sim.Thing("x"), 0)
		assert.Equal(t, []string{"ns"}, asked, "one of the streams has all namespaces")
		for _, acc := range []*Accumulator{all, some} {
			var snap one
			update(t, acc, &snap)
			assert.Len(t, snap.A, 1)
		}
	})
}
