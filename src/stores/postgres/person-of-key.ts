/**
 * The person of a request. Every key belongs to one person, or to none, for as long as it exists (a trigger ensures
 * this), and it exists for as long as its records do. So the key of a record identifies the person at admission, and a
 * settlement writes nothing more (docs/design/keys.md, Keys of people).
 */

/** SQL for the person of a row's key. */
export const personOfKey = (table: string): string =>
  `(select k.person_id from api_key k where k.id = ${table}.key_id)`;

/** SQL for rows whose key is this person's; always true if `person` is null. */
export function isOfPerson(table: string, person: string): string {
  return `(${person}::uuid is null or ${table}.key_id in (select k.id from api_key k where k.person_id = ${person}))`;
}
