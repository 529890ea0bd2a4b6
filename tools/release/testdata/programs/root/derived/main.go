// Command derived keeps a result up to date on snapshots that it makes itself.
package main

import (
	"fmt"
	"log"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/kates"
)

type snapshot struct{ Services []*kates.Service }

func main() {
	g := derive.New[snapshot]("names")
	services := derive.Objects(g, "services", func(s *snapshot) []*kates.Service { return s.Services })
	lengths := derive.Map(services, "lengths", func(_ *derive.Reader, _ types.NamespacedName, s *kates.Service) (int, error) {
		return len(s.Name), nil
	})
	changes := derive.ChangesOf(lengths)
	s := &kates.Service{}
	s.Namespace, s.Name = "prod", "web"
	r, err := g.Update(&snapshot{Services: []*kates.Service{s}})
	if err != nil {
		log.Fatal(err)
	}
	for change := range changes.All(r) {
		fmt.Println(change.Key, *change.New)
	}
	// Output: prod/web 3
}
