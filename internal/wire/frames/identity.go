package frames

import (
	"encoding/json"
	"errors"
)

// Identity says which object and version something is, as far as that can be read.
type Identity struct{ Namespace, Name, UID, Version string }

// IdentityOf reads what it can of an object that does not decode.
func IdentityOf(raw []byte, e Encoding) (id Identity) {
	if e == Protobuf {
		_ = fields(raw, func(number int, value []byte) {
			if number == 1 {
				_ = fields(value, func(number int, value []byte) {
					if into := id.field(number); into != nil {
						*into = string(value)
					}
				})
			}
		})
		return id
	}
	at(raw, `"metadata"`, func(metadata []byte) {
		b := inMemory(metadata)
		_ = b.object(func(key []byte) error {
			value, err := b.value()
			if into := id.member(string(key)); err == nil && into != nil {
				_ = json.Unmarshal(value, into)
			}
			return err
		})
	})
	return id
}

// field is where a field of ObjectMeta goes, by its number.
func (id *Identity) field(number int) *string {
	switch number {
	case 1:
		return &id.Name
	case 3:
		return &id.Namespace
	case 5:
		return &id.UID
	case 6:
		return &id.Version
	}
	return nil
}

func (id *Identity) member(key string) *string {
	switch key {
	case `"name"`:
		return &id.Name
	case `"namespace"`:
		return &id.Namespace
	case `"uid"`:
		return &id.UID
	case `"resourceVersion"`:
		return &id.Version
	}
	return nil
}

// errFound ends a search.
var errFound = errors.New("found")

// at calls the function with the value of a member of an object, as far as it can be found.
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

// DropManagedFields takes metadata.managedFields out of an object that is not decoded yet, in place, and returns what is left.
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
