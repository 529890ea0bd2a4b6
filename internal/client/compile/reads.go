package compile

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/engine/tables"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
)

// Reads is what a function reads of an object.
type Reads struct {
	all []read // of the functions that it consists of
	err error  // why it makes no sense
}

// read is what one function reads.
type read struct {
	paths []project.Path
	any   bool         // it may read any field
	takes reflect.Type // what a user's function takes; nil: it is of this library, or takes metadata
}

// reading is what a function of this library reads, beside what is always held.
func reading(paths ...project.Path) Reads { return Reads{all: []read{{paths: paths}}} }

// errNilFunction is the error of a query whose function was made of a nil one.
var errNilFunction = errors.New("it was made of a function that is nil")

// readsOf is what a function reads that takes values of a type.
func readsOf(t reflect.Type) Reads {
	if t == metadataType {
		return reading(allMetadata...)
	}
	r, bare := read{takes: t}, bareType(t)
	switch {
	case t.Kind() == reflect.Interface:
		return Reads{err: fmt.Errorf("it takes a %s, which is another Go type in tests than in production: "+
			"have it take the kind's Go type, *Unstructured, or a metav1.Object for the metadata", objects.TypeName(t))}
	case bare == reflect.TypeFor[metav1.PartialObjectMetadata]():
		r.paths = allMetadata
	case tables.Projects(bare):
		for _, path := range project.Paths(bare, isMetadata) {
			r.any = r.any || len(path) == 0
			r.paths = append(r.paths, pathsAt(path)...)
		}
	default:
		r.any = true
	}
	return Reads{all: []read{r}}
}

var metadataType = reflect.TypeFor[metav1.Object]()

func isMetadata(t reflect.Type) bool { return t == reflect.TypeFor[metav1.ObjectMeta]() }

// pathsAt is what has to be held of a field. Of the metadata that is what functions look at. With
// the creation time, a part of an object would look whole: see kates.Keep.
func pathsAt(path project.Path) []project.Path {
	if len(path) == 1 && strings.EqualFold(path[0], "metadata") {
		return allMetadata
	}
	return []project.Path{path}
}

// add adds what another function reads. The first error counts.
func (r *Reads) add(other Reads) {
	r.all, r.err = append(r.all, other.all...), cmp.Or(r.err, other.err)
}

// onlyMetadata reports whether a function takes whatever has metadata.
func (r Reads) onlyMetadata() bool {
	return !slices.ContainsFunc(r.all, func(one read) bool { return one.takes != nil || slices.ContainsFunc(one.paths, isBeside) })
}

// readsAny reports whether a function may read any field.
func (r Reads) readsAny() bool {
	return slices.ContainsFunc(r.all, func(one read) bool { return one.any })
}

// isBeside reports whether a path leads elsewhere than to metadata.
func isBeside(path project.Path) bool {
	return len(path) > 0 && !slices.ContainsFunc([]string{"metadata", "apiVersion", "kind"}, func(name string) bool {
		return strings.EqualFold(name, path[0])
	})
}

// takesOtherThan reports whether a function takes another type than that of which the fields are
// held.
func (r Reads) takesOtherThan(held reflect.Type) bool {
	return slices.ContainsFunc(r.all, func(one read) bool { return one.takes != nil && bareType(one.takes) != held })
}

// held returns what a projection of objects of a type has to hold for a function; nil: the type is
// not known. chosen is what the user has chosen.
func (r Reads) held(typ reflect.Type, chosen *project.Keep) (paths []project.Path, err error) {
	for _, one := range r.all {
		for _, path := range one.paths {
			as, ok := path, true
			switch {
			case one.takes == nil:
			case typ != nil:
				as, ok = project.Resolve(typ, path)
			case slices.ContainsFunc(path, func(name string) bool { return name[:1] != strings.ToLower(name[:1]) }):
				return nil, fmt.Errorf("takes a %s, whose field %s has no JSON tag", one.takes, strings.Join(path, "."))
			}
			if created := (project.Path{"metadata", "creationTimestamp"}); ok && slices.Equal(as, created) && !chosen.Holds(created...) {
				return nil, fmt.Errorf("reads %s, which makes a part of an object look whole: name it in the Projection", strings.Join(created, "."))
			}
			if ok {
				paths = append(paths, as)
			}
		}
	}
	return paths, nil
}

// beside is what a function reads beside what objects have that are held as a type.
func (r Reads) beside(held reflect.Type) (paths []project.Path) {
	for _, one := range r.all {
		if bareType(one.takes) != held {
			paths = append(paths, one.paths...)
		}
	}
	return paths
}
