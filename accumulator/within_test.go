package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kates-go/kates/accumulator/stream"
)

// narrow is a source of all namespaces that notes the namespaces of requests.
type narrow struct {
	stream.Plain
	within func(namespace string) stream.Source
}

func (n narrow) Within(namespace string) stream.Source { return n.within(namespace) }

func TestG4AWriteIsSettledByAListOfTheObjectsNamespace(t *testing.T) {
	var s *sim
	var asked []string
	config := stream.Config{StreamLists: true, Source: func(r Resource, namespace string, form Form) stream.Source {
		return narrow{stream.Plain{ListerWatcherWithContext: s.source(r, namespace, form)}, func(namespace string) stream.Source {
			asked = append(asked, namespace)
			return stream.Plain{ListerWatcherWithContext: s.source(r, namespace, form)}
		}}
	}}
	bubble(t, config, func(t *testing.T, fresh *sim, streams *stream.Set) {
		s = fresh
		q := simQuery("A", "as")
		// only the server can judge it
		q.Fields = fields.OneTermNotEqualSelector("spec.node", "n1")
		all := watching(t, streams, Options{}, q)
		q.Namespace = "ns"
		some := watching(t, streams, Options{}, q)
		synctest.Wait()
		s.late(time.Hour)
		own{s, streams}.put("as", thing("x"), 0)
		assert.Equal(t, []string{"ns"}, asked, "one of the streams has all namespaces")
		for _, acc := range []*Accumulator{all, some} {
			var snap one
			update(t, acc, &snap)
			assert.Len(t, snap.A, 1)
		}
	})
}
