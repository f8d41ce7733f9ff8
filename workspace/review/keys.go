package review

import "slices"

// keySet is the commands of a hunk, each once, in the order in which they came.
// A hunk that grows hands its set on: copies share what they hold, and only the
// newest is added to.
type keySet struct {
	list  []string
	known map[string]struct{} // nil while the list is short
}

// shortKeys is up to how many keys looking through the list is cheaper than a map.
const shortKeys = 16

func keysOf(keys ...string) keySet { return keySet{list: keys} }

func (s *keySet) has(key string) bool {
	if s.known == nil {
		return slices.Contains(s.list, key)
	}
	_, ok := s.known[key]
	return ok
}

// add puts a key at the end, if it is not there and names a command.
func (s *keySet) add(key string) {
	if key == "" || s.has(key) {
		return
	}
	s.list = append(s.list, key)
	s.know(s.list[len(s.list)-1:])
}

// know takes keys that the list has got into the map, if there is or has to be one.
func (s *keySet) know(keys []string) {
	switch {
	case s.known != nil:
	case len(s.list) > shortKeys:
		s.known = make(map[string]struct{}, 2*len(s.list))
		keys = s.list
	default:
		return
	}
	for _, k := range keys {
		s.known[k] = struct{}{}
	}
}

// join puts the keys of another set behind, and returns how many it looked at:
// those of the smaller one.
func (s *keySet) join(o keySet) int {
	if len(o.list) <= len(s.list) {
		for _, k := range o.list {
			s.add(k)
		}
		return len(o.list)
	}
	n := len(s.list)
	list := slices.DeleteFunc(slices.Grow(slices.Clone(s.list), len(o.list)), o.has)
	mine := len(list)
	s.list, s.known = append(list, o.list...), o.known
	s.know(s.list[:mine])
	return n
}

// joined is a hunk with what the given ones have in common: the oldest id, all
// keys. Without any, it is new. A hunk that grows by and by costs no more than
// what it grows by.
func (f *File) joined(hunks []hunk) hunk {
	var n hunk
	for _, h := range hunks {
		f.steps++
		switch {
		case h.id == 0:
			continue
		case n.id == 0:
			n.id, n.keys, n.merged, n.edited = h.id, h.keys, h.merged, h.edited
			continue
		case h.id < n.id:
			n.id, h.id = h.id, n.id
		}
		n.merged = append(append(n.merged, h.id), h.merged...)
		n.edited = n.edited || h.edited
		f.steps += n.keys.join(h.keys)
	}
	return n
}
