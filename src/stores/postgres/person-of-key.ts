/**
 * The person of a request. Every key belongs to one person, or to none, for as long as it exists (a trigger ensures
 * this), and it exists for as long as its records do. So the key of a record identifies the person at admission, and a
 * settlement writes nothing more (docs/design/keys.md, Keys of people).
 */

/** SQL for the person of a row's key. */
export const personOfKey = (table: string): string =>
  `(select k.person_id from api_key k where k.id = ${table}.key_id)`;

/** The columns of a row's key, its person, and their names; for queries with `joinsOfKey`. */
export const columnsOfKey = "k.name as key_name, k.person_id, coalesce(p.name, p.email) as person_name";
export const joinsOfKey = (table: string): string =>
  `left join api_key k on k.id = ${table}.key_id left join person p on p.id = k.person_id`;

/** SQL for rows whose key is this person's; always true if `person` is null. */
export function isOfPerson(table: string, person: string): string {
  return `(${person}::uuid is null or ${table}.key_id in (select k.id from api_key k where k.person_id = ${person}))`;
}
