-- The first tables of the source; change them as you like while the job runs.
create schema inv;
create table inv.orders (id int generated always as identity primary key, customer text, amount numeric(10,2));
insert into inv.orders (customer, amount) values ('Ada', 12.50), ('Grace', 8.00), ('Edsger', 31.40);
-- The profiles s3 and trino keep their catalog of tables here.
create database lake;
