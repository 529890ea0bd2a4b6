package fleet

import (
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestG4AWhereChoosesInEachClusterOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		clusters := make(map[string]*katestest.Fake)
		for _, name := range []string{"a", "b"} {
			k := newCluster(t, types.UID(name), configMap("in-"+name), configMap("out"))
			clusters[name] = k
			_ = f.Set(Member{Name: name, Client: k.Client})
		}
		in := kates.WhereOf(func(o metav1.Object) (bool, error) { return strings.HasPrefix(o.GetName(), "in"), nil })
		s := watchThings(t, f, kates.Query{Name: "Maps", Where: in})
		expect(t, settled(t, s), "a/in-a, b/in-b")
		for _, name := range []string{"in-own", "far"} {
			if err := clusters["b"].Client.Create(t.Context(), configMap(name), nil); err != nil {
				t.Fatal(err)
			}
		}
		snap := new(things)
		if _, err := s.Update(t.Context(), snap); err != nil {
			t.Fatal(err)
		}
		expect(t, snap, "a/in-a, b/in-b, b/in-own")
	})
}
