package frames

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Identity is what can be read of an object that does not decode.
type Identity struct{ Namespace, Name, UID, Version string }

// IdentityOf reads the identity of an object that does not decode, as far as possible. It is empty
// if a part of it is there twice, and a part that is no valid UTF-8 is left out.
func IdentityOf(raw []byte, e Encoding) (id Identity) {
	if e == Protobuf {
		return identityInProto(raw)
	}
	var metadata []byte
	if !each(raw, `"metadata"`, func(value []byte) { metadata = value }) {
		return Identity{}
	}
	for _, key := range []string{`"name"`, `"namespace"`, `"uid"`, `"resourceVersion"`} {
		if !each(metadata, key, func(value []byte) {
			if utf8.Valid(value) {
				_ = json.Unmarshal(value, id.place(0, key))
			}
		}) {
			return Identity{}
		}
	}
	return id
}

// identityInProto is IdentityOf for protobuf. Objects and their metadata have more fields than
// fields can know.
func identityInProto(raw []byte) (id Identity) {
	var metadata []byte
	n := 0
	_ = fields(raw, 0, func(number protowire.Number, value []byte) error {
		if number == 1 {
			metadata = value
			n++
		}
		return nil
	})
	seen := map[*string]bool{}
	_ = fields(metadata, 0, func(number protowire.Number, value []byte) error {
		into := id.place(number, "")
		if into == nil {
			return nil
		}
		if seen[into] {
			n++
		}
		seen[into] = true
		if utf8.Valid(value) {
			*into = string(value)
		}
		return nil
	})
	if n > 1 {
		return Identity{}
	}
	return id
}

// each calls the function with the value of a member of a JSON object, as far as the object can be
// read. It is false if the object has the member twice: nobody can tell which one counts.
func each(raw []byte, key string, f func(value []byte)) (once bool) {
	n := 0
	b := inMemory(raw)
	_ = b.object(func(k []byte) error {
		value, err := b.value()
		if err == nil && string(k) == key {
			n++
			f(value)
		}
		return err
	})
	return n < 2
}

// place returns where a field of ObjectMeta belongs, by its number or by its key in JSON; nil for
// other fields.
func (id *Identity) place(number protowire.Number, key string) *string {
	switch {
	case number == 1 || key == `"name"`:
		return &id.Name
	case number == 3 || key == `"namespace"`:
		return &id.Namespace
	case number == 5 || key == `"uid"`:
		return &id.UID
	case number == 6 || key == `"resourceVersion"`:
		return &id.Version
	}
	return nil
}

// errFound ends a search.
var errFound = errors.New("found")

// at calls the function with the value of one member of a JSON object, if it can be found.
func at(raw []byte, key string, f func(value []byte)) {
	b := inMemory(raw)
	_ = b.object(func(k []byte) error {
		value, err := b.value()
		if err == nil && string(k) == key {
			f(value)
			return errFound
		}
		return err
	})
}

// managedFields is field 17 of ObjectMeta.
const managedFields = 17

// AppliedFields returns the part of metadata.managedFields that lists what a manager has applied,
// in memory of its own, for an object that is not decoded yet. It is nil if there is none, and if
// the object cannot be read.
func AppliedFields(raw []byte, e Encoding, manager string) (found []byte) {
	if e == Protobuf {
		return appliedInProto(raw, manager)
	}
	at(raw, `"metadata"`, func(metadata []byte) {
		at(metadata, `"managedFields"`, func(value []byte) {
			var all []metav1.ManagedFieldsEntry
			if json.Unmarshal(value, &all) != nil {
				return
			}
			for _, entry := range all {
				applied := entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
				if applied && entry.Manager == manager && entry.FieldsV1 != nil {
					found = entry.FieldsV1.GetRawBytes()
				}
			}
		})
	})
	return found
}

// Fields of a ManagedFieldsEntry, and the one of FieldsV1.
const (
	entryManager     = 1
	entryOperation   = 2
	entryFields      = 7
	entrySubresource = 8
	fieldsRaw        = 1
)

// appliedInProto is AppliedFields for protobuf.
func appliedInProto(raw []byte, manager string) (found []byte) {
	each := func(raw []byte, wanted protowire.Number, f func(value []byte)) {
		_ = fields(raw, 0, func(number protowire.Number, value []byte) error {
			if number == wanted {
				f(value)
			}
			return nil
		})
	}
	each(raw, 1, func(metadata []byte) {
		each(metadata, managedFields, func(entry []byte) {
			var of [entrySubresource + 1][]byte
			_ = fields(entry, 0, func(number protowire.Number, value []byte) error {
				if number <= entrySubresource {
					of[number] = value
				}
				return nil
			})
			applied := string(of[entryOperation]) == string(metav1.ManagedFieldsOperationApply) &&
				len(of[entrySubresource]) == 0
			if applied && string(of[entryManager]) == manager {
				each(of[entryFields], fieldsRaw, func(value []byte) { found = bytes.Clone(value) })
			}
		})
	})
	return found
}

// DropManagedFields removes metadata.managedFields from an object that is not decoded yet, in
// place, and returns the rest.
func DropManagedFields(raw []byte, e Encoding) []byte {
	if e == Protobuf {
		return dropField(raw, managedFields)
	}
	at(raw, `"metadata"`, func(metadata []byte) {
		at(metadata, `"managedFields"`, func(value []byte) {
			if len(value) < len("null") {
				return // []
			}
			for i := copy(value, "null"); i < len(value); i++ {
				value[i] = ' '
			}
		})
	})
	return raw
}
