package fleet

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/doors"
	"github.com/kates-go/kates/kates"
)

// Rules returns the least roles with which a program can do in one of a fleet's clusters what it
// needs there: see [kates.Rules]. The client is one of such a cluster. To the needs comes that of
// the fleet itself: it reads the UID of the namespace kube-system, which tells whether a cluster is
// still the same one.
//
// The needs of [Run] and [Watch] are [Watches]. Those of [RunEach] and of controllers are
// [kates.Watches], with the queries that are for the struct: of a [HomeController] there is one
// struct for the home cluster, and another one for the clusters. What [Targets] watch comes from
// data: give a [kates.Query] for each kind that may come.
//
// Leases are in the home cluster, and their rights in the roles that kates.Rules prints for that
// cluster. A [kates.LeaderElection] or a [kates.Sharding] among the needs here says that the
// program writes under a lease in this cluster, too. Then all that is written may be read.
func Rules(ctx context.Context, c *kates.Client, name string, needs ...kates.Need) (*kates.Roles, error) {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	all := append(slices.Clone(needs), kates.Uses(system, kates.CanGet))
	for i, need := range all {
		switch need.(type) {
		case kates.LeaderElection, *kates.LeaderElection, kates.Sharding, *kates.Sharding:
			all[i] = doors.Leased.(kates.Need)
		}
	}
	return kates.Rules(ctx, c, name, all...)
}

// Watches is the need, in each cluster, of a program that watches a struct type by [Watch] or
// [Run]. The queries are the same as there.
func Watches[S any](queries ...kates.Query) kates.Need {
	t := reflect.TypeFor[S]()
	shape, err := shapeOf(t)
	if err == nil {
		err = shape.check(queries)
	}
	if err != nil {
		return doors.Need([]kates.Need(nil), fmt.Errorf("watches of %s: %w", t, err)).(kates.Need)
	}
	options := make([]kates.RunOption, len(queries))
	for i, q := range queries {
		options[i] = q
	}
	return doors.Watches(shape.part, options).(kates.Need)
}
