package patch

import (
	"errors"
	"fmt"
	"reflect"
)

// ServerFields are the fields of the metadata that only the server writes.
var ServerFields = []string{
	"resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
	"managedFields", "selfLink",
}

// KeepIdentity returns an error if a change made another object of before. It restores in after
// the fields that only the server writes.
func KeepIdentity(before, after map[string]any) error {
	for _, field := range []string{"apiVersion", "kind"} {
		if !reflect.DeepEqual(before[field], after[field]) {
			return fmt.Errorf("its %s was changed, which cannot be", field)
		}
	}
	was, _ := before["metadata"].(map[string]any)
	is, _ := after["metadata"].(map[string]any)
	if was != nil && is == nil {
		return errors.New("its metadata was removed, which cannot be")
	}
	for _, field := range []string{"name", "namespace", "uid"} {
		if !reflect.DeepEqual(was[field], is[field]) {
			return fmt.Errorf("its metadata.%s was changed, which cannot be", field)
		}
	}
	for _, field := range ServerFields {
		if value, had := was[field]; had {
			is[field] = value
		} else {
			delete(is, field)
		}
	}
	return nil
}
